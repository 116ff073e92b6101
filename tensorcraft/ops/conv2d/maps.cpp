// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/conv2d/maps.hpp"

#include "tensorcraft/op/launch/tensor_map.hpp"

#include <cstring>

namespace tensorcraft::kernel::conv2d {
namespace {

using Swizzle = TiledTensor::Swizzle;

// A stride in bytes; of a size of 1 any.
uint64_t stride_bytes(int64_t size, int64_t stride, DType dtype) {
  return size > 1 ? uint64_t(stride) * dtype_bytes(dtype) : 16;
}
bool rounds(DType dtype) { return dtype == DType::float32; }

// One window, where there is one, needs no stride.
uint32_t steps_of(const WindowAxis& a) { return a.out == 1 ? 1 : uint32_t(a.stride); }
int32_t upper_of(const WindowAxis& a) { return int32_t(a.first(a.out - 1) - (a.in - 1)); }

TensorMap windows_map(const Params& p, const Config& c, DType dtype, const DeviceInfo& device) {
  return op::tensor_map(
      Im2colTensor{.images = {.dtype = dtype,
                              .address = const_cast<void*>(p.x),
                              .rank = 4,
                              .dims = {uint64_t(p.channels), uint64_t(p.columns.in),
                                       uint64_t(p.rows.in), uint64_t(p.batch)},
                              .strides = {stride_bytes(p.columns.in, p.x_at.column, dtype),
                                          stride_bytes(p.rows.in, p.x_at.row, dtype),
                                          stride_bytes(p.batch, p.x_at.sample, dtype)},
                              .box = {uint32_t(c.block_k), uint32_t(c.block_m)},
                              .element_strides = {1, steps_of(p.columns), steps_of(p.rows), 1, 1},
                              .swizzle = Swizzle::bytes_128,
                              .rounds_to_tf32 = rounds(dtype)},
                   .lower = {int32_t(-p.columns.before), int32_t(-p.rows.before)},
                   .upper = {upper_of(p.columns), upper_of(p.rows)}},
      device);
}

// Channels by filters, tap by tap, so that a box ends with the channels of a tap.
TensorMap filters_map(const Params& p, const Config& c, DType dtype, const DeviceInfo& device) {
  const auto taps = uint64_t(p.rows.taps * p.columns.taps);
  return op::tensor_map(TiledTensor{.dtype = dtype,
                                    .address = const_cast<void*>(p.w),
                                    .rank = 3,
                                    .dims = {uint64_t(p.channels), uint64_t(p.filters), taps},
                                    .strides = {stride_bytes(p.filters, p.w_at.filter, dtype),
                                                uint64_t(p.channels) * dtype_bytes(dtype)},
                                    .box = {uint32_t(c.block_k), uint32_t(c.block_n), 1},
                                    .swizzle = Swizzle::bytes_128,
                                    .rounds_to_tf32 = rounds(dtype)},
                        device);
}

TensorMap result_map(const Params& p, const Config& c, DType dtype, const DeviceInfo& device) {
  const int bytes = int(dtype_bytes(dtype)), columns = result_slot_columns(c, bytes);
  return op::tensor_map(
      TiledTensor{.dtype = dtype,
                  .address = p.out,
                  .rank = 2,
                  .dims = {uint64_t(p.filters), uint64_t(p.batch * p.rows.out * p.columns.out)},
                  .strides = {uint64_t(p.out_at.column * bytes)},
                  .box = {uint32_t(columns), uint32_t(kGroupRows)},
                  .swizzle = columns * bytes == 128 ? Swizzle::bytes_128 : Swizzle::bytes_64},
      device);
}

}  // namespace

void add_maps(op::Plan& plan, const Params& params, DType dtype, const DeviceInfo& device) {
  Config c;
  std::memcpy(&c, plan.main().kernel.config.data(), sizeof(c));
  if (c.consumers == 0) return;
  MappedParams p{params, {}, {}, {}};
  if (p.batch > 0) {
    p.x_map = windows_map(p, c, dtype, device);
    p.w_map = filters_map(p, c, dtype, device);
    p.out_map = result_map(p, c, dtype, device);
  }
  plan.set_params(plan.main_index(), p);
}

}  // namespace tensorcraft::kernel::conv2d

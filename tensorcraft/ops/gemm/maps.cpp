// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/maps.hpp"

#include "tensorcraft/op/tensor_map.hpp"

#include <cstring>

namespace tensorcraft::kernel::gemm {
namespace {

struct BoxShape {
  int length, lines;  // elements along a line, lines
};

TiledTensor::Swizzle swizzle_of(int line_bytes) {
  using enum TiledTensor::Swizzle;
  return line_bytes == 128 ? bytes_128 : line_bytes == 64 ? bytes_64 : bytes_32;
}

// How the copy engine sees a matrix. A line of a box is 128, 64 or 32 bytes, which it swizzles.
TensorMap matrix_map(const Lines& x, DType dtype, BoxShape box, const DeviceInfo& device) {
  const bool has_batch = x.call.batch_rank > 0;
  const uint32_t entries = has_batch ? x.call.batch_shape[0] : 1;
  if (x.length == 0 || x.count == 0 || entries == 0) return {};  // nothing is copied
  const auto bytes = [&](int64_t stride) { return uint64_t(stride * x.element_bytes); };
  TiledTensor tiled{.dtype = dtype,
                    .address = x.matrix.data,
                    .rank = 3,
                    .dims = {uint64_t(x.length), uint64_t(x.count), 1},
                    .strides = {16, 16},  // of sizes of 1
                    .box = {uint32_t(box.length), uint32_t(box.lines), 1},
                    .swizzle = swizzle_of(box.length * x.element_bytes)};
  if (x.count > 1) tiled.strides[0] = bytes(x.next_line);
  if (has_batch && x.matrix.batch_strides[0] > 0) {
    tiled.dims[2] = entries;
    tiled.strides[1] = bytes(x.matrix.batch_strides[0]);
  }
  return op::tensor_map(tiled, device);
}

}  // namespace

template <class P>
void add_maps(op::Plan& plan, const P& params, const Given& given, const DeviceInfo& device) {
  const jit::KernelKey& kernel = plan.first().kernel;
  Config c;
  std::memcpy(&c, kernel.config.data(), sizeof(c));
  if (c.cluster_m * c.cluster_n == 1 && c.consumers == 0) return;
  WithResultMap<P> p{{params, {}, {}}, {}};
  const Lines a = a_lines(p, given), b = b_lines(p, given);
  const int length = 128 / given.operand_bytes;
  p.a_map = matrix_map(c.swap ? b : a, kernel.types[0], {length, a_box_lines(c)}, device);
  p.b_map = matrix_map(c.swap ? a : b, kernel.types[0], {length, b_box_lines(c)}, device);
  if (c.slots > 0) {
    const Lines d = lines_of(p, p.d, p.m, p.n, given.result_bytes, Layout::row_major);
    const SlotShape slot = slot_shape(c, given.result_bytes);
    p.d_map = matrix_map(d, kernel.types[1], {slot.cols, slot.rows}, device);
  }
  if (c.consumers > 0)
    plan.set_params(0, p);
  else
    plan.set_params(0, static_cast<const WithMaps<P>&>(p));
}

template void add_maps(op::Plan&, const Params&, const Given&, const DeviceInfo&);
template void add_maps(op::Plan&, const ExpressionParams&, const Given&, const DeviceInfo&);
template void add_maps(op::Plan&, const InterpretedParams&, const Given&, const DeviceInfo&);

}  // namespace tensorcraft::kernel::gemm

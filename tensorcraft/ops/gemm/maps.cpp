// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/maps.hpp"

#include "tensorcraft/op/choice/ladder.hpp"
#include "tensorcraft/op/checks/moved_as.hpp"
#include "tensorcraft/op/launch/tensor_map.hpp"
#include "tensorcraft/ops/gemm/problem.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace tensorcraft::kernel::gemm {
namespace {

constexpr ConfigField kPackFields[] = {{"threads"}, {"layout", kLayouts}, {"vector"}, {"parts"}};
const jit::Rung& kPack = op::make_rung("gemm", "pack", "parts/pack.cuh", kPackFields, "PackConfig");

struct BoxShape {
  int length, lines;  // elements along a line, lines
  // The bytes that a miss of the L2 cache brings.
  TiledTensor::L2Promotion fetch = TiledTensor::L2Promotion::bytes_128;
};

TiledTensor::Swizzle swizzle_of(int line_bytes) {
  using enum TiledTensor::Swizzle;
  return line_bytes == 128 ? bytes_128 : line_bytes == 64 ? bytes_64 : bytes_32;
}

// How the copy engine sees the matrices of so many entries. A line of a box is 128, 64 or 32 bytes,
// which it swizzles.
TensorMap matrix_map(const Lines& x, int64_t entries, DType dtype, BoxShape box,
                     const DeviceInfo& device, bool rounds = false) {
  if (x.length == 0 || x.count == 0 || entries == 0) return {};  // nothing is copied
  const auto bytes = [&](int64_t stride) { return uint64_t(stride * x.element_bytes); };
  TiledTensor tiled{.dtype = dtype,
                    .address = x.matrix.data,
                    .rank = 3,
                    .dims = {uint64_t(x.length), uint64_t(x.count), 1},
                    .strides = {16, 16},  // of sizes of 1
                    .box = {uint32_t(box.length), uint32_t(box.lines), 1},
                    .swizzle = swizzle_of(box.length * x.element_bytes),
                    .l2_promotion = box.fetch,
                    .rounds_to_tf32 = rounds};
  if (x.count > 1) tiled.strides[0] = bytes(x.next_line);
  if (entries > 1 && x.matrix.batch_strides[0] > 0) {
    tiled.dims[2] = uint64_t(entries);
    tiled.strides[1] = bytes(x.matrix.batch_strides[0]);
  }
  return op::tensor_map(tiled, device);
}

// The plan's next copy of an operand, whose map is at `map_at` in the main step's argument.
void add_pack(op::Plan& plan, const PackedOperand& to, const Params& p, Lines from, Layout along_k,
              int32_t map_at) {
  const bool is_a = along_k == Layout::row_major;
  const int64_t out_at = int64_t(plan.workspace_bytes);
  PackParams pack{.in = from.matrix,
                  .workspace = nullptr,
                  .out_at = out_at,
                  .lines = to.lines,
                  .k = p.k,
                  .part = to.part,
                  .batch_shape = {},
                  .batch_rank = to.entries > 1 ? p.batch_rank : 0};
  if (!is_a) std::swap(pack.in.row_stride, pack.in.col_stride);
  std::copy_n(p.batch_shape, kMaxBatchRank, pack.batch_shape);
  const DType type = to.element_bytes == 4 ? DType::float32 : op::moved_as(to.element_bytes);
  const op::Start<PackConfig> start{pack_config(from, along_k, to.parts), pack_blocks(to)};
  op::Step& step = plan.add_preparation(op::make_step(kPack, {&type, 1}, start), pack);
  step.workspace_at = offsetof(PackParams, workspace);
  plan.workspace_bytes += size_t(to.bytes());
  plan.main().workspace_maps[is_a ? 0 : 1] = {map_at, out_at};
}

template <class P>
void add(op::Plan& plan, const P& params, const Given& given, const DeviceInfo& device) {
  const jit::KernelKey kernel = plan.main().kernel;
  Config c;
  std::memcpy(&c, kernel.config.data(), sizeof(c));
  if (c.cluster_m * c.cluster_n == 1 && c.consumers == 0) return;
  const Packing packing =
      c.consumers > 0 ? packing_for(params, given, c) : Packing{};  // tma copies nothing
  WithResultMap<P> p{{packing.apply(params), {}, {}}, {}};
  if (packing.a.is_needed) p.a.data = op::workspace_address();
  if (packing.b.is_needed) p.b.data = op::workspace_address();
  Lines a = a_lines(p, given), b = b_lines(p, given);
  if (c.parts > 1) a.length = b.length = packing.a.next_line();
  const int length = 128 / given.operand_bytes;
  // Few rows make a product that only reads: the next line of a weight is of the next step.
  using enum TiledTensor::L2Promotion;
  const auto fetch = c.block_m <= 64 && c.block_n <= 64 ? bytes_256 : bytes_128;
  const BoxShape a_box{length, a_box_lines(c), fetch}, b_box{length, b_box_lines(c), fetch};
  const bool rounds = given.is_float32() && given.allow_tf32;
  p.a_map = matrix_map(c.swap ? b : a, given.batch, kernel.types[0], a_box, device, rounds);
  p.b_map = matrix_map(c.swap ? a : b, given.batch, kernel.types[0], b_box, device, rounds);
  if (c.slots == kEngineSlots) {
    const Lines d = lines_of(p, p.d, p.m, p.n, given.result_bytes, Layout::row_major);
    const SlotShape slot = slot_shape(c, given.result_bytes);
    p.d_map = matrix_map(d, given.batch, kernel.types[1], {slot.cols, slot.rows}, device);
  }
  if (c.consumers > 0)
    plan.set_params(plan.main_index(), p);
  else
    plan.set_params(plan.main_index(), static_cast<const WithMaps<P>&>(p));
  const auto place_of = [&](const TensorMap& map) {
    return int32_t(reinterpret_cast<const char*>(&map) - reinterpret_cast<const char*>(&p));
  };
  const int32_t a_at = place_of(c.swap ? p.b_map : p.a_map);
  const int32_t b_at = place_of(c.swap ? p.a_map : p.b_map);
  if (packing.a.is_needed)
    add_pack(plan, packing.a, params, a_lines(params, given), Layout::row_major, a_at);
  if (packing.b.is_needed)
    add_pack(plan, packing.b, params, b_lines(params, given), Layout::column_major, b_at);
}

}  // namespace

void add_maps(op::Plan& plan, const Params& params, const Given& given, const DeviceInfo& device) {
  add(plan, params, given, device);
}
void add_maps(op::Plan& plan, const ExpressionParams& params, const Given& given,
              const DeviceInfo& device) {
  add(plan, params, given, device);
}
void add_maps(op::Plan& plan, const GroupedParams& params, const Given& given,
              const DeviceInfo& device) {
  add(plan, params, given, device);
}
void add_maps(op::Plan& plan, const InterpretedParams& params, const Given& given,
              const DeviceInfo& device) {
  add(plan, params, given, device);
}

}  // namespace tensorcraft::kernel::gemm

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/maps.hpp"

#include "tensorcraft/op/ladder.hpp"
#include "tensorcraft/op/moved_as.hpp"
#include "tensorcraft/op/tensor_map.hpp"
#include "tensorcraft/ops/gemm/problem.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace tensorcraft::kernel::gemm {
namespace {

constexpr ConfigField kPackFields[] = {{"threads"}, {"layout", kLayouts}, {"vector"}, {"parts"}};
const jit::Rung& kPack = op::make_rung("gemm", "pack", "pack.cuh", kPackFields, "PackConfig");

int64_t num_entries(const Params& p) {
  int64_t count = 1;
  for (int i = 0; i < p.batch_rank; ++i) count *= p.batch_shape[i];
  return count;
}

// How the copy engine sees a matrix: boxes of 128 bytes along its lines by `lines` of them.
TensorMap matrix_map(const Lines& x, const TiledTensor& type, int lines, const DeviceInfo& device) {
  const int64_t entries = num_entries(x.call), next_entry = x.matrix.batch_strides[0];
  if (x.length == 0 || x.count == 0 || entries == 0) return {};  // nothing is copied
  const auto bytes = [&](int64_t stride) { return uint64_t(stride * x.element_bytes); };
  TiledTensor tiled = type;
  tiled.address = x.matrix.data;
  tiled.rank = 3;
  tiled.dims = {uint64_t(x.length), uint64_t(x.count), 1};
  tiled.strides = {16, 16};  // of sizes of 1
  tiled.box = {uint32_t(128 / x.element_bytes), uint32_t(lines), 1};
  tiled.swizzle = TiledTensor::Swizzle::bytes_128;
  if (x.count > 1) tiled.strides[0] = bytes(x.next_line);
  if (entries > 1 && next_entry > 0) {
    tiled.dims[2] = uint64_t(entries);
    tiled.strides[1] = bytes(next_entry);
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
  step.instances = instances;
  step.workspace_at = offsetof(PackParams, workspace);
  plan.workspace_bytes += size_t(to.bytes());
  plan.main().workspace_maps[is_a ? 0 : 1] = {map_at, out_at};
}

}  // namespace

void add_maps(op::Plan& plan, const Params& params, const Given& given, const DeviceInfo& device) {
  Config c;
  std::memcpy(&c, plan.main().kernel.config.data(), sizeof(c));
  if (c.cluster_m * c.cluster_n == 1 && c.consumers == 0) return;
  const auto& types = plan.main().kernel.types;
  const TiledTensor operand{.dtype = types[0],
                            .rounds_to_tf32 = given.allow_tf32 && given.is_float32()};
  if (c.consumers == 0) {
    TmaParams p{params, {}, {}};
    p.a_map = matrix_map(a_lines(p, given), operand, a_box_lines(c), device);
    p.b_map = matrix_map(b_lines(p, given), operand, b_box_lines(c), device);
    return plan.set_params(plan.main_index(), p);
  }
  if (has_a_registers(c.a_layout, given.operand_bytes) && is_exchanged(params, given))
    return add_maps(plan, exchanged(params), given, device);
  const PackedOperand a = packed_a(params, given), b = packed_b(params, given);
  WgmmaParams p{{packed_params(params, given), {}, {}}, {}};
  if (a.is_needed) p.a.data = op::workspace_address();
  if (b.is_needed) p.b.data = op::workspace_address();
  Lines a_parts = a_lines(p, given), b_parts = b_lines(p, given);
  if (c.parts > 1) a_parts.length = b_parts.length = a.next_line();
  p.a_map = matrix_map(a_parts, operand, a_box_lines(c), device);
  p.b_map = matrix_map(b_parts, operand, b_box_lines(c), device);
  if (c.slots > 0) {
    const Lines d = lines_of(p, p.d, p.m, p.n, given.result_bytes, c.d_layout);
    p.d_map = matrix_map(d, {.dtype = types[1]}, kGroupRows, device);
  }
  plan.set_params(plan.main_index(), p);
  const auto at = [&](const TensorMap& map) {
    return int32_t(reinterpret_cast<const char*>(&map) - reinterpret_cast<const char*>(&p));
  };
  if (a.is_needed)
    add_pack(plan, a, params, a_lines(params, given), Layout::row_major, at(p.a_map));
  if (b.is_needed)
    add_pack(plan, b, params, b_lines(params, given), Layout::column_major, at(p.b_map));
}

}  // namespace tensorcraft::kernel::gemm

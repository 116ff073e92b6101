// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/paged_attention/maps.hpp"

#include "tensorcraft/op/launch/tensor_map.hpp"
#include "tensorcraft/ops/paged_attention/plan.h"

#include <algorithm>
#include <cstring>

namespace tensorcraft::kernel::paged_attention {
namespace {

using op::boxes_map;

// Queries or outputs: `rows` rows of a tile, of the packed heads of one token after another.
TensorMap tokens_map(const void* data, const attention_tiles::Strides& s, DType dtype, int length,
                     const attention_tiles::Params& a, int packed, int rows,
                     const DeviceInfo& device) {
  const auto stride = [](int size, int64_t n) { return size > 1 ? n : 0; };
  return boxes_map(
      {.data = data,
       .dtype = dtype,
       .length = length,
       .sizes = {a.heads, a.seq_q, a.batch},
       .strides = {stride(a.heads, s.head), stride(a.seq_q, s.row), stride(a.batch, s.batch)},
       .box = {packed, rows / packed, 1}},
      device);
}

// Codes come as whole rows of a tile, in their order.
TensorMap cache_map(const Cache& c, DType dtype, int length, const Params& p, const Config& config,
                    const DeviceInfo& device) {
  const int heads = p.heads / p.group;
  return boxes_map({.data = c.data,
                    .dtype = dtype,
                    .length = length,
                    .sizes = {p.block_size, heads, p.blocks},
                    .strides = {c.row, heads > 1 ? c.head : 0, p.blocks > 1 ? c.block : 0},
                    .box = {config.box_rows, 1, 1},
                    .line = dtype_bytes(dtype) == 1 ? config.head_dim : 0},
                   device);
}

}  // namespace

Config add_page_maps(op::Plan& plan, const Problem& problem, const DeviceInfo& device) {
  const Params p = plan.params_as<Params>(plan.main());  // as the rung has adapted them
  Config c;
  std::memcpy(&c, plan.main().kernel.config.data(), sizeof(c));
  const attention_tiles::Params a = as_attention(p);
  const auto map = [&](const void* data, const attention_tiles::Strides& s, int length, int rows) {
    return tokens_map(data, s, problem.dtype, length, a, c.packed, rows, device);
  };
  HopperParams h{.attention = {a, map(p.q, a.q_strides, p.head_dim, c.block_m),
                               cache_map(p.k, problem.code, p.head_dim, p, c, device),
                               cache_map(p.v, problem.code, p.v_dim, p, c, device),
                               map(p.out, a.out_strides, p.v_dim, kGroupRows), nullptr,
                               std::max(1, attention_tiles::hopper_section(a) / c.packed), p.tree},
                 .pages = p};
  const bool writes_parts = c.parts == attention_tiles::kWritten;
  h.attention.num_parts = writes_parts ? parts_of_fold(p, c).parts : 1;
  plan.set_params(plan.main_index(), h);
  const auto place_of = [&](const auto& member) {
    return int32_t(reinterpret_cast<const char*>(&member) - reinterpret_cast<const char*>(&h));
  };
  plan.main().counter_at = place_of(h.attention.taken);
  const bool folds_in_memory = c.parts == attention_tiles::kFolded &&
                               values_are_keys(tile_config(c)) && parts_of_fold(p, c).parts > 1;
  if (folds_in_memory)
    plan.workspace_bytes = size_t(plan.main().launch.grid.x) * folded_bytes(tile_config(c));
  if (writes_parts || folds_in_memory) plan.main().workspace_at = place_of(h.attention.parts);
  return c;
}

}  // namespace tensorcraft::kernel::paged_attention

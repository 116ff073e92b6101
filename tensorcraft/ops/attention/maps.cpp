// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/attention/maps.hpp"

#include "tensorcraft/op/launch/tensor_map.hpp"
#include "tensorcraft/op/choice/attention_plan.h"

#include <cstring>

namespace tensorcraft::kernel::attention {
namespace {

struct Sizes {
  int head_dim, rows, heads, batch;
};

// A tensor as boxes of `lines` rows of one head.
TensorMap rows_map(const void* data, const Strides& strides, DType dtype, const Sizes& sizes,
                   int lines, const DeviceInfo& device) {
  return op::boxes_map({.data = data,
                        .dtype = dtype,
                        .length = sizes.head_dim,
                        .sizes = {sizes.rows, sizes.heads, sizes.batch},
                        .strides = {strides.row, strides.head, strides.batch},
                        .box = {lines, 1, 1}},
                       device);
}

}  // namespace

bool add_maps(op::Plan& plan, bool is_persistent, const Problem& problem,
              const DeviceInfo& device) {
  const jit::KernelKey& kernel = plan.main().kernel;
  Config c;
  std::memcpy(&c, kernel.config.data(), sizeof(c));
  if (c.consumers == 0) return false;
  HopperParams p{problem.params, {}, {}, {}, {}, nullptr, hopper_section(problem.params)};
  const Sizes queries{p.head_dim, p.seq_q, p.heads, p.batch};
  const Sizes keys{p.head_dim, p.seq_k, p.heads / p.group, p.batch};
  const Sizes values{p.v_dim, p.seq_k, p.heads / p.group, p.batch};
  const Sizes outputs{p.v_dim, p.seq_q, p.heads, p.batch};
  const DType dtype = problem.dtype;
  p.q_map = rows_map(p.q, p.q_strides, dtype, queries, c.block_m, device);
  p.k_map = rows_map(p.k, p.k_strides, dtype, keys, c.block_n, device);
  if (element_bytes(c) == 2) p.v_map = rows_map(p.v, p.v_strides, dtype, values, c.block_n, device);
  p.out_map = rows_map(p.out, p.out_strides, problem.out_dtype, outputs, kGroupRows, device);
  plan.set_params(plan.main_index(), p);
  const auto* taken = reinterpret_cast<const char*>(&p.taken);
  if (is_persistent) plan.main().counter_at = int32_t(taken - reinterpret_cast<const char*>(&p));
  return true;
}

}  // namespace tensorcraft::kernel::attention

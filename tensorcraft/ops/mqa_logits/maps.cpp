// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/mqa_logits/maps.hpp"

#include "tensorcraft/op/launch/tensor_map.hpp"
#include "tensorcraft/ops/mqa_logits/params.h"

#include <cstring>
#include <numeric>

namespace tensorcraft::kernel::mqa_logits {

void add_maps(op::Plan& plan, DType dtype, const DeviceInfo& device) {
  const Params p = plan.params_as<Params>(plan.main());  // as the rung has adapted them
  Config c;
  std::memcpy(&c, plan.main().kernel.config.data(), sizeof(c));
  const auto stride = [](int64_t size, int64_t n) { return size > 1 ? n : 0; };
  const int box_rows = p.tables.data ? std::gcd(p.block_size, kGroupRows) : kGroupRows;
  plan.set_params(
      plan.main_index(),
      WgmmaParams{.call = p,
                  .q_map = op::boxes_map({.data = p.q,
                                          .dtype = dtype,
                                          .length = p.head_dim,
                                          .sizes = {p.heads, p.queries, p.batch},
                                          .strides = {stride(p.heads, p.q_strides.head),
                                                      stride(p.queries, p.q_strides.row),
                                                      stride(p.batch, p.q_strides.batch)},
                                          .box = {c.heads, c.queries, 1}},
                                         device),
                  .k_map = op::boxes_map({.data = p.k,
                                          .dtype = dtype,
                                          .length = p.head_dim,
                                          .sizes = {p.block_size, p.blocks, 1},
                                          .strides = {stride(p.block_size, p.k_strides.row),
                                                      stride(p.blocks, p.k_strides.block), 0},
                                          .box = {box_rows, 1, 1}},
                                         device),
                  .box_rows = box_rows});
}

}  // namespace tensorcraft::kernel::mqa_logits

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/rung.h"
#include "tensorcraft/ops/paged_attention/params.h"

#include <string_view>

// How each rung is chosen and started; host only. Grids depend on shapes alone, so a captured graph
// serves sequences that grow.
namespace tensorcraft::kernel::paged_attention {

using Choice = op::Choice<Config>;
using Start = op::Start<Config>;

// What the call says besides Params.
struct Given {
  int element_bytes, code_bytes;
};

inline constexpr int kThreads = 128;

inline Choice naive(const Params& p, const Given&, const op::Gpu&) {
  const int64_t blocks = div_ceil(p.tokens * p.heads, int64_t(kThreads / 32));
  if (blocks > op::kMaxBlocks) return op::refuse("queries times heads must be below 2^33");
  return Start{.config = {.threads = kThreads}, .blocks = blocks};
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "a warp a query of a head, online softmax through the table of pages",
     .choose = naive},
};

}  // namespace tensorcraft::kernel::paged_attention

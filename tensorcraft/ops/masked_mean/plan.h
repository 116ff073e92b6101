// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/launch_plan.h"
#include "tensorcraft/ops/masked_mean/params.h"

#include <string_view>

// Which grid each rung gets; host only. A `problem` is why a rung declines, or empty.
namespace tensorcraft::kernel::masked_mean {

using Launch = op::LaunchPlan<Config>;

// Row-major x [batch, steps, cols], lengths [batch] and out [batch, cols].
inline Params contiguous_params(const void* x, const void* lengths, void* out, int64_t batch,
                                int64_t steps, int64_t cols) {
  return {.x = x,
          .lengths = lengths,
          .out = out,
          .batch = batch,
          .steps = steps,
          .cols = cols,
          .x_batch = steps * cols,
          .x_step = cols,
          .x_col = 1,
          .lengths_step = 1,
          .out_batch = cols,
          .out_col = 1};
}

inline Launch naive_launch(const Params& p) {
  return {{.threads = 256}, div_ceil<int64_t>(p.batch * p.cols, 256)};
}

inline int64_t column_blocks(const Params& p) {
  constexpr int64_t kColumns = 32;  // of a block: one for each lane
  return p.batch * div_ceil(p.cols, kColumns);
}

inline Launch block_launch(const Params& p) { return {{.threads = 256}, column_blocks(p)}; }

inline std::string_view block_problem(const Params& p) {
  return column_blocks(p) > op::kMaxBlocks ? "needs 2^31 blocks or more" : "";
}

}  // namespace tensorcraft::kernel::masked_mean

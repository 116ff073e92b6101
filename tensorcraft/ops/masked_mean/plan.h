// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/rung.h"
#include "tensorcraft/ops/masked_mean/params.h"

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::masked_mean {

struct Given {};  // Params say everything
using Choice = op::Choice<Config>;

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

inline Choice naive(const Params& p, const Given&, const op::Gpu&) {
  const Config config;
  return op::Start<Config>{config, div_ceil<int64_t>(p.batch * p.cols, config.threads)};
}

inline Choice block(const Params& p, const Given&, const op::Gpu&) {
  const int64_t blocks = p.batch * div_ceil(p.cols, int64_t(kLanes));
  if (blocks > op::kMaxBlocks) return op::refuse("needs 2^31 blocks or more");
  return op::Start<Config>{{}, blocks};
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "block",
     .file = "01_block.cuh",
     .idea = "one block for 32 columns of a sequence, steps over its warps",
     .choose = block},
    {.name = "naive", .file = "00_naive.cuh", .idea = "one thread an output", .choose = naive},
};

}  // namespace tensorcraft::kernel::masked_mean

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/ops/masked_mean/params.h"

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::masked_mean {

using Choice = op::Choice<Config>;
using Start = op::Start<Config>;

// Row-major x [batch, steps, cols], lengths [batch] and out [batch, cols].
inline Params contiguous_params(const void* x, const void* lengths, void* out, int64_t batch,
                                int64_t steps, int64_t cols) {
  return {x, lengths, out, batch, steps, cols, {steps * cols, cols, 1}, 1, {cols, 1}};
}

inline Choice naive(const Params& p, const op::NoGiven&, const op::Gpu&) {
  return Start{{}, div_ceil<int64_t>(p.batch * p.cols, Config().threads)};
}

inline Choice block(const Params& p, const op::NoGiven&, const op::Gpu&) {
  const int64_t blocks = p.batch * div_ceil(p.cols, int64_t(kLanes));
  return Start{{}, blocks};
}

inline constexpr op::Rung<Params, op::NoGiven, Config> kRungs[] = {
    {.name = "block",
     .file = "01_block.cuh",
     .idea = "one block for 32 columns of a sequence, steps over its warps",
     .choose = block},
    {.name = "naive", .file = "00_naive.cuh", .idea = "one thread an output", .choose = naive},
};

}  // namespace tensorcraft::kernel::masked_mean

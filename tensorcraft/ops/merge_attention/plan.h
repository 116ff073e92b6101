// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/row_plan.h"
#include "tensorcraft/ops/merge_attention/params.h"

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::merge_attention {

using Choice = op::Choice<Config>;
using Start = op::Start<Config>;
using CallParams = Nested<Params>;

// Facts of a call that Params do not hold.
struct Given {
  int element_bytes;
};

inline constexpr int kThreads = 256;

inline Choice naive(const CallParams& p, const Given&, const op::Gpu&) {
  return Start{.config = {.threads = kThreads, .nested = p.is_nested()},
               .blocks = div_ceil(p.rows, int64_t(kThreads))};
}

inline Choice vectorized(const CallParams& p, const Given& given, const op::Gpu&) {
  const int bytes = given.element_bytes;
  if (p.a_step != 1 || p.b_step != 1 || p.out_step != 1)
    return op::refuse("the last axis must have stride 1");
  if (p.cols * bytes % 16) return op::refuse("rows must be multiples of 16 bytes");
  if (!op::rows_vector_aligned(p.out_a, p.maps[Params::kOutA], bytes) ||
      !op::rows_vector_aligned(p.out_b, p.maps[Params::kOutB], bytes) ||
      !op::rows_vector_aligned(p.out, p.maps[Params::kOut], bytes))
    return op::refuse("rows must begin at multiples of 16 bytes");
  const auto units = uint64_t(p.cols * bytes / 16);
  const Config config{.threads = kThreads,
                      .group = int(std::clamp<uint64_t>(std::bit_ceil(units), 4, 32)),
                      .nested = p.is_nested()};
  return Start{.config = config,
               .blocks = div_ceil(p.rows, int64_t(config.threads / config.group))};
}

inline constexpr op::Rung<CallParams, Given, Config> kRungs[] = {
    {.name = "vectorized",
     .file = "01_vectorized.cuh",
     .idea = "a group of threads a row, 16-byte accesses",
     .choose = vectorized},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread a row, any strides",
     .choose = naive,
     .general = op::with_nested<Config>},
};

}  // namespace tensorcraft::kernel::merge_attention

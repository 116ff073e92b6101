// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/ops/moe_router/params.h"

#include <bit>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::moe_router {

using Choice = op::Choice<Config>;

inline Choice naive(const Params& p, const op::NoGiven&, const op::Gpu&) {
  const int64_t blocks = div_ceil(p.tokens, int64_t(Config().threads));
  return op::Start<Config>{{}, blocks};
}

inline Choice warp(const Params& p, const op::NoGiven&, const op::Gpu&) {
  const int64_t blocks = div_ceil(p.tokens, int64_t(Config().threads / 32));
  const int slots = int(std::bit_ceil(unsigned(div_ceil(p.experts, 32))));
  return op::Start<Config>{{.slots = slots}, blocks};
}

inline constexpr op::Rung<Params, op::NoGiven, Config> kRungs[] = {
    {.name = "warp",
     .file = "01_warp.cuh",
     .idea = "the experts in the registers of a warp, k times the best by shuffles",
     .choose = warp},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread a token, all scores anew for each slot",
     .choose = naive},
};

}  // namespace tensorcraft::kernel::moe_router

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/row_plan.h"
#include "tensorcraft/ops/topk/params.h"

#include <algorithm>
#include <bit>
#include <string_view>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::topk {

using Choice = op::Choice<Config>;

inline constexpr int64_t kMaxWarpRow = 512;

// Row-major x [rows, cols], out and indices [rows, k].
inline Params contiguous_params(const void* x, void* out, int64_t* indices, int64_t rows,
                                int64_t cols, int64_t k) {
  Params p{.x = x, .out = out, .indices = indices, .rows = rows, .cols = cols, .k = k};
  p.x_step = p.out_step = 1;
  p.x_rows = op::contiguous_rows(rows, cols);
  p.out_rows = op::contiguous_rows(rows, k);
  if (indices) {
    p.indices_step = 1;
    p.indices_rows = p.out_rows;
  }
  return p;
}

inline op::Start<Config> start(const Params& p, Config config, int64_t blocks) {
  config.nested = p.x_rows.axes > 1 || p.out_rows.axes > 1 || p.indices_rows.axes > 1;
  return {.config = config, .blocks = blocks};
}

// Why no rung can take the rows, or empty.
inline std::string_view rows_refusal(const Params& p) {
  if (p.cols > int64_t(0xffffffff)) return "needs fewer than 2^32 elements along the axis";
  return p.rows > op::kMaxBlocks ? "needs fewer than 2^31 rows" : "";
}

inline Choice naive(const Params& p, const op::NoGiven&, const op::Gpu&) {
  if (const auto why = rows_refusal(p); !why.empty()) return op::refuse(why);
  return start(p, {.threads = 128}, div_ceil(p.rows, int64_t(128)));
}

inline Choice block(const Params& p, const op::NoGiven&, const op::Gpu&) {
  if (const auto why = rows_refusal(p); !why.empty()) return op::refuse(why);
  return start(p, {.threads = 256}, p.rows);
}

inline Choice warp(const Params& p, const op::NoGiven&, const op::Gpu&) {
  constexpr int kThreads = 128;
  if (p.cols > kMaxWarpRow) return op::refuse("needs at most 512 elements along the axis");
  if (const auto why = rows_refusal(p); !why.empty()) return op::refuse(why);
  const auto slots = std::bit_ceil(uint64_t(std::max(div_ceil(p.cols, int64_t(32)), int64_t(1))));
  return start(p, {.threads = kThreads, .slots = int(slots)},
               div_ceil(p.rows, int64_t(kThreads / 32)));
}

inline constexpr op::Rung<Params, op::NoGiven, Config> kRungs[] = {
    {.name = "warp",
     .file = "02_warp.cuh",
     .idea = "the row in the registers of a warp, k times the largest by shuffles",
     .choose = warp},
    {.name = "block",
     .file = "01_block.cuh",
     .idea = "a block a row, read once; candidates that beat the k-th are sorted in shared memory",
     .choose = block},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread a row, read k times",
     .choose = naive,
     .general = op::with_nested<Config>},
};

}  // namespace tensorcraft::kernel::topk

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/row_plan.h"
#include "tensorcraft/ops/topk/params.h"

#include <algorithm>
#include <bit>
#include <string_view>

// Which Config and grid each rung gets; host only. A `problem` is why a rung declines, or empty.
namespace tensorcraft::kernel::topk {

using Launch = op::LaunchPlan<Config>;

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

inline Launch launch(const Params& p, Config config, int64_t blocks) {
  config.nested = p.x_rows.axes > 1 || p.out_rows.axes > 1 || p.indices_rows.axes > 1;
  return {.config = config, .blocks = blocks};
}

inline Launch naive_launch(const Params& p) {
  return launch(p, {.threads = 128}, div_ceil(p.rows, int64_t(128)));
}
inline Launch block_launch(const Params& p) { return launch(p, {.threads = 256}, p.rows); }
inline Launch warp_launch(const Params& p) {
  constexpr int kThreads = 128;
  const auto slots = std::bit_ceil(uint64_t(std::max(div_ceil(p.cols, int64_t(32)), int64_t(1))));
  return launch(p, {.threads = kThreads, .slots = int(std::min(slots, uint64_t(16)))},
                div_ceil(p.rows, int64_t(kThreads / 32)));
}

inline std::string_view rows_problem(const Params& p) {
  if (p.cols > int64_t(0xffffffff)) return "needs fewer than 2^32 elements along the axis";
  return p.rows > op::kMaxBlocks ? "needs fewer than 2^31 rows" : "";
}
inline std::string_view warp_problem(const Params& p) {
  return p.cols > kMaxWarpRow ? "needs at most 512 elements along the axis" : rows_problem(p);
}

}  // namespace tensorcraft::kernel::topk

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/row_plan.h"
#include "tensorcraft/ops/cumulative_sum/params.h"

#include <algorithm>
#include <string_view>

// Which Config and grid each rung gets; host only. A `problem` is why a rung declines, or empty.
namespace tensorcraft::kernel::cumulative_sum {

struct Planned {
  op::LaunchPlan<Config> launch;
  Params params;
  size_t workspace_bytes = 0, workspace_zeroed = 0;
};

// Row-major x and out [rows, cols].
inline Params contiguous_params(const void* x, void* out, int64_t rows, int64_t cols) {
  const RowMap map = op::contiguous_rows(rows, cols);
  return {.x = x,
          .out = out,
          .rows = rows,
          .cols = cols,
          .x_step = 1,
          .out_step = 1,
          .segments = 1,
          .segment_cols = cols,
          .x_rows = map,
          .out_rows = map};
}

inline bool is_nested(const Params& p) { return p.x_rows.axes > 1 || p.out_rows.axes > 1; }

inline Planned naive_plan(const Params& p) {
  const Config config{.threads = 128, .vector = 8, .nested = is_nested(p)};
  return {.launch = {.config = config, .blocks = div_ceil(p.rows, int64_t(128))}, .params = p};
}
inline std::string_view naive_problem(const Params& p) {
  return div_ceil(p.rows, int64_t(128)) > op::kMaxBlocks ? "needs fewer than 2^38 rows" : "";
}

// Threads of a block: a short row leaves most of a large one idle.
inline constexpr int kThreads = 256, kShortRowThreads = 64;

// Blocks that an SM holds at once, at 64 registers a thread: few rows are cut into that many
// segments, and where fewer fitted, the last would start when the others are done.
constexpr int blocks_per_sm(const Config& c) { return 1024 / c.threads; }

// What the compiler is asked for. 16-bit elements take at most 62 registers on sm_80 to sm_90a, and
// spill on newer architectures where they must.
constexpr int min_blocks(const Config& c) { return c.vector == 8 ? 1 : blocks_per_sm(c); }

// Floats have wide accesses where rows allow it; integers are widened, and have none.
inline Planned row_plan(Params p, bool is_float, int element_bytes, int num_sms) {
  constexpr int64_t kFewTiles = 4;
  Config config{.threads = kThreads, .vector = is_float ? 16 / element_bytes : 4};
  if (p.cols <= 2 * kShortRowThreads * config.vector) config.threads = kShortRowThreads;
  config.nested = is_nested(p);
  config.wide = is_float && p.x_step == 1 && p.out_step == 1 &&
                op::rows_vector_aligned(p.x, p.x_rows, element_bytes) &&
                op::rows_vector_aligned(p.out, p.out_rows, element_bytes);
  const int64_t tile = int64_t(config.threads) * config.vector, tiles = div_ceil(p.cols, tile);
  const int64_t wanted = p.rows ? int64_t(blocks_per_sm(config)) * num_sms / p.rows : 1;
  const int64_t segments = std::clamp(tiles / kFewTiles, int64_t(1), std::max(wanted, int64_t(1)));
  const int64_t each = std::max(div_ceil(tiles, segments), int64_t(1));
  p.segment_cols = each * tile;
  p.segments = std::max(div_ceil(tiles, each), int64_t(1));
  Planned plan{.launch = {.config = config, .blocks = p.rows * p.segments}, .params = p};
  plan.launch.min_blocks = min_blocks(config);
  if (p.segments > 1) {
    plan.workspace_zeroed = size_t(plan.launch.blocks + 1) * sizeof(uint32_t);
    plan.params.sums = round_up(int64_t(plan.workspace_zeroed), int64_t(256));
    plan.workspace_bytes = size_t(plan.params.sums + plan.launch.blocks * int64_t(sizeof(int64_t)));
  }
  return plan;
}
inline std::string_view row_problem(const Params& p) {
  return p.rows > op::kMaxBlocks ? "needs fewer than 2^31 rows" : "";
}
// Why an accepted problem is left to naive; empty where it is not.
inline std::string_view row_doubt(const Params& p) {
  constexpr int64_t kManyRows = 16384, kShort = 32;
  if (p.cols <= kShort) return "rows of at most 32 elements";
  return p.x_step != 1 && p.rows >= kManyRows ? "many rows, whose elements are apart" : "";
}

}  // namespace tensorcraft::kernel::cumulative_sum

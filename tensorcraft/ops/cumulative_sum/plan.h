// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/row_plan.h"
#include "tensorcraft/ops/cumulative_sum/params.h"

#include <algorithm>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::cumulative_sum {

using Start = op::Start<Config>;
using Choice = op::Choice<Config>;

struct Given {
  bool is_float;
  int element_bytes;
  bool converts = false;
  Operation operation = Operation::sum;
};

// Are elements multiplied as floats? No block begins in the middle of such a row.
constexpr bool is_from_left(const Given& given) {
  return given.operation == Operation::float_prod ||
         (given.operation == Operation::prod && given.is_float);
}

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

inline Choice naive(const Params& p, const Given& given, const op::Gpu&) {
  const int64_t blocks = div_ceil(p.rows, int64_t(128));
  return Start{{.operation = given.operation,
                .threads = 128,
                .vector = 8,
                .nested = is_nested(p),
                .converts = given.converts},
               blocks};
}

// Threads of a block: a short row leaves most of a large one idle.
inline constexpr int kThreads = 256, kShortRowThreads = 64;

// Blocks that an SM holds at once, at 64 registers a thread: few rows are cut into that many
// segments, and if fewer fitted, the last would start when the others are done.
constexpr int blocks_per_sm(const Config& c) { return 1024 / c.threads; }

// The blocks that the compiler is asked for. 16-bit elements take at most 62 registers on sm_80 to
// sm_90a, and spill on newer architectures if they must.
constexpr int min_blocks(const Config& c) { return c.vector == 8 ? 1 : blocks_per_sm(c); }

// Floats have wide accesses if rows allow it; integers are widened, and have none.
inline Config row_config(const Params& p, const Given& given) {
  Config config{.operation = given.operation,
                .threads = kThreads,
                .vector = given.is_float ? 16 / given.element_bytes : 4};
  if (p.cols <= 2 * kShortRowThreads * config.vector) config.threads = kShortRowThreads;
  config.nested = is_nested(p);
  config.converts = given.converts;
  config.wide = given.is_float && p.x_step == 1 && p.out_step == 1 &&
                op::rows_vector_aligned(p.x, p.x_rows, given.element_bytes) &&
                op::rows_vector_aligned(p.out, p.out_rows, given.element_bytes);
  return config;
}

// Bytes at the begin of a workspace that must be 0: a ticket and the flags of segments.
inline size_t workspace_zeroed(const Params& p) {
  return p.segments > 1 ? size_t(p.rows * p.segments + 1) * sizeof(uint32_t) : 0;
}

// Cuts rows into segments if they are too few for the GPU.
inline void cut_rows(Params& p, const Given& given, const op::Gpu& gpu) {
  constexpr int64_t kFewTiles = 4;
  if (is_from_left(given)) return;
  const Config config = row_config(p, given);
  const int64_t tile = int64_t(config.threads) * config.vector, tiles = div_ceil(p.cols, tile);
  const int64_t wanted = p.rows ? int64_t(blocks_per_sm(config)) * gpu.num_sms / p.rows : 1;
  const int64_t segments = std::clamp(tiles / kFewTiles, int64_t(1), std::max(wanted, int64_t(1)));
  const int64_t each = std::max(div_ceil(tiles, segments), int64_t(1));
  p.segment_cols = each * tile;
  p.segments = std::max(div_ceil(tiles, each), int64_t(1));
  p.sums = round_up(int64_t(workspace_zeroed(p)), int64_t(256));
}

inline size_t workspace_bytes(const Params& p) {
  return p.segments > 1 ? size_t(p.sums) + size_t(p.rows * p.segments) * sizeof(int64_t) : 0;
}

inline Choice row(const Params& whole, const Given& given, const op::Gpu& gpu) {
  constexpr int64_t kManyRows = 16384, kShort = 32;
  if (whole.rows > op::kMaxBlocks) return op::refuse("needs fewer than 2^31 rows");
  Params p = whole;
  cut_rows(p, given, gpu);
  const Config config = row_config(p, given);
  const Start start{config, p.rows * p.segments, min_blocks(config)};
  if (p.cols <= kShort) return {start, "rows of at most 32 elements"};
  if (p.x_step != 1 && p.rows >= kManyRows) return {start, "many rows, whose elements are apart"};
  return start;
}

// naive: any strides, and sums of the dtype of x, are served too.
constexpr Config serves_all(Config config) {
  config.nested = config.converts = 1;
  return config;
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "row",
     .file = "01_row.cuh",
     .idea = "a block a row or part of one, scans by shuffles",
     .choose = row,
     .spills = "sums of 64 bits on sm_120, whose compiler keeps fewer registers free",
     .adapt = cut_rows},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread a row",
     .choose = naive,
     .general = serves_all},
};

}  // namespace tensorcraft::kernel::cumulative_sum

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/row_plan.h"
#include "tensorcraft/ops/softmax/params.h"

#include <string_view>

// Which Config and grid each rung gets; host only. A `problem` is why a rung declines, or empty.
namespace tensorcraft::kernel::softmax {

using Launch = op::LaunchPlan<Config>;

inline constexpr int kMaxSlots = 8;      // of a block; up to 64 values a thread
inline constexpr int kMaxWarpSlots = 4;  // a longer row has work for several warps
inline constexpr int kMaxCluster = 8;    // blocks that every GPU with clusters accepts

// `rows` rows of `cols` elements, one behind another.
inline Params contiguous_params(const void* x, void* out, int64_t rows, int64_t cols) {
  const RowMap map = op::contiguous_rows(rows, cols);
  return {.x = x,
          .out = out,
          .rows = rows,
          .cols = cols,
          .x_step = 1,
          .out_step = 1,
          .x_rows = map,
          .out_rows = map};
}

inline bool has_unit_step(const Params& p) {
  return p.cols <= 1 || (p.x_step == 1 && p.out_step == 1);
}

// Elements of an access: 16 bytes where every row of both tensors starts at such a boundary.
inline int vector_of(const Params& p, int element_bytes) {
  const bool aligned = op::rows_vector_aligned(p.x, p.x_rows, element_bytes) &&
                       op::rows_vector_aligned(p.out, p.out_rows, element_bytes);
  return aligned ? 16 / element_bytes : 1;
}

// `group` threads hold a row in as many accesses of each as it takes.
constexpr Config row_config(int64_t cols, int threads, int group, int vector) {
  const int64_t slots = std::min<int64_t>(div_ceil(cols, group * vector), kMaxSlots + 1);
  return {.threads = threads,
          .group = group,
          .vector = vector,
          .slots = int(slots),
          .whole = slots * group * vector == cols};
}

constexpr Config in_registers_config(int64_t cols, int vector) {
  // Half a warp where that leaves no thread without elements and a warp would.
  const Config half = row_config(cols, 128, 16, vector), warp = row_config(cols, 128, 32, vector);
  if (half.whole && !warp.whole && half.slots <= kMaxWarpSlots) return half;
  return warp.slots <= kMaxWarpSlots ? warp : row_config(cols, 256, 256, vector);
}

// Blocks of 256 threads share a row, as few as have the registers for it.
constexpr Config cluster_config(int64_t cols, int vector) {
  const int64_t block_slot = 256 * vector;  // elements that one access of a block's threads covers
  Config config{.vector = vector, .cluster = 2};
  while (config.cluster < kMaxCluster && cols > config.cluster * block_slot * kMaxSlots)
    config.cluster *= 2;
  const int64_t slots = div_ceil(cols, config.cluster * block_slot);
  config.slots = int(std::min<int64_t>(slots, kMaxSlots + 1));
  config.whole = slots * config.cluster * block_slot == cols;
  return config;
}

inline Launch launch(const Params& p, Config config, int64_t blocks) {
  config.nested = p.x_rows.axes > 1 || p.out_rows.axes > 1;
  return {.config = config, .blocks = std::min(blocks, op::kMaxBlocks), .cluster = config.cluster};
}

inline Launch naive_launch(const Params& p) {
  return launch(p, {.threads = 128, .group = 1}, div_ceil(p.rows, 128));
}

inline Launch block_launch(const Params& p) {
  const int threads = p.cols <= 1024 ? 128 : 256;
  return launch(p, {.threads = threads, .group = threads}, p.rows);
}

inline Launch online_launch(const Params& p, int element_bytes) {
  return launch(p, {.threads = 256, .group = 256, .vector = vector_of(p, element_bytes)}, p.rows);
}

inline Launch in_registers_launch(const Params& p, int element_bytes) {
  const Config config = in_registers_config(p.cols, vector_of(p, element_bytes));
  return launch(p, config, div_ceil(p.rows, config.threads / config.group));
}

inline Launch cluster_launch(const Params& p, int element_bytes) {
  const Config config = cluster_config(p.cols, 16 / element_bytes);
  return launch(p, config, p.rows * config.cluster);
}

inline std::string_view naive_problem(const Params& p) {
  return div_ceil(p.rows, 128) > op::kMaxBlocks ? "needs fewer than 2^38 rows" : "";
}

inline std::string_view online_problem(const Params& p) {
  return has_unit_step(p) ? "" : "elements along the axis must be neighbours";
}

inline std::string_view in_registers_problem(const Params& p, int element_bytes) {
  if (!has_unit_step(p)) return "elements along the axis must be neighbours";
  const Config config = in_registers_config(p.cols, vector_of(p, element_bytes));
  if (config.slots > kMaxSlots) return "a row must fit the registers of 256 threads";
  if (div_ceil(p.rows, config.threads / config.group) > op::kMaxBlocks)
    return "needs fewer than 2^31 rows";
  return "";
}

inline std::string_view cluster_problem(const Params& p, int element_bytes, bool has_clusters) {
  if (!has_clusters) return "needs sm_90 for clusters";
  if (!has_unit_step(p)) return "elements along the axis must be neighbours";
  if (vector_of(p, element_bytes) == 1) return "rows must start at multiples of 16 bytes";
  if (p.rows > op::kMaxBlocks / kMaxCluster) return "needs fewer than 2^28 rows";
  return cluster_config(p.cols, 16 / element_bytes).slots > kMaxSlots
             ? "a row must fit the registers of 8 blocks"
             : "";
}

}  // namespace tensorcraft::kernel::softmax

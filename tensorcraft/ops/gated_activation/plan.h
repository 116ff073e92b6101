// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/row_plan.h"
#include "tensorcraft/ops/gated_activation/params.h"

#include <string_view>

// Which Config and grid each rung gets; host only. A `problem` is why a rung declines, or empty.
namespace tensorcraft::kernel::gated_activation {

using Launch = op::LaunchPlan<Config>;

inline constexpr int kThreads = 256;

// `rows` rows of 2 * `cols` elements in x and `cols` in out, one behind another.
inline Params contiguous_params(const void* x, void* out, int64_t rows, int64_t cols) {
  return {.x_step = 1,
          .out_step = 1,
          .x = x,
          .out = out,
          .rows = rows,
          .cols = cols,
          .maps = row_maps(op::contiguous_rows(rows, 2 * cols), op::contiguous_rows(rows, cols))};
}

inline Launch launch(const Params& p, Config config, int64_t blocks) {
  config.nested = p.maps.is_nested();
  return {config, blocks};
}

inline Launch naive_launch(const Params& p, Gate gate) {
  return launch(p, {.gate = gate, .threads = kThreads}, div_ceil(p.rows * p.cols, kThreads));
}

// Threads that share a row of `units` accesses: a short row has no more than it needs, a long one
// the most that leave the fewest threads of its last tile without work.
constexpr int group_of(int64_t units, int vectors) {
  constexpr int kShort = 32;
  const auto needed = std::bit_ceil(uint64_t(div_ceil(units, vectors)));
  if (needed <= kShort) return int(needed);
  const auto covered = [&](int group) { return round_up(units, group * vectors); };
  int best = kThreads;
  for (const int group : {128, 64})
    if (covered(group) < covered(best)) best = group;
  return best;
}

// Few elements spread over all SMs rather than fill a thread. Params learn how tiles lie.
inline Launch vectorized_launch(Params& p, Gate gate, int element_bytes, int num_sms) {
  constexpr int kMany = 2, kBlocksPerSm = 4;
  const int64_t units = p.cols * element_bytes / 16;
  const bool fills_device = p.rows * units >= int64_t(kThreads) * kMany * kBlocksPerSm * num_sms;
  Config config{.gate = gate, .threads = kThreads, .vectors = fills_device ? kMany : 1};
  config.group = group_of(units, config.vectors);
  const int64_t tiles = div_ceil(units, config.group * config.vectors);
  p.by_tiles = Divider::of(std::max<int64_t>(tiles, 1));
  return launch(p, config, div_ceil(p.rows, config.threads / config.group) * tiles);
}

inline std::string_view vectorized_problem(const Params& p, int element_bytes) {
  if (p.x_step != 1 || p.out_step != 1) return "the last axis must have stride 1";
  if (p.cols * element_bytes % 16) return "half a row must be a multiple of 16 bytes";
  if (!op::rows_vector_aligned(p.x, p.maps[Params::kX], element_bytes) ||
      !op::rows_vector_aligned(p.out, p.maps[Params::kOut], element_bytes))
    return "rows must begin at multiples of 16 bytes";
  const int64_t most_tiles = p.cols * element_bytes / 16 / kThreads + 1;
  if (p.rows > op::kMaxBlocks / most_tiles) return "more than 2^31 - 1 blocks";
  return "";
}

}  // namespace tensorcraft::kernel::gated_activation

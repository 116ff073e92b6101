// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/row_plan.h"
#include "tensorcraft/ops/gated_activation/params.h"

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::gated_activation {

using CallParams = Nested<Params>;
using Choice = op::Choice<Config>;

// Facts of a call that Params do not hold.
struct Given {
  Activation gate;
  int element_bytes;
};

inline constexpr int kThreads = 256;

// `rows` rows of 2 * `cols` elements in x and `cols` in out, one behind another.
inline CallParams contiguous_params(const void* x, void* out, int64_t rows, int64_t cols) {
  return with_maps(
      Params{.x_step = 1, .out_step = 1, .x = x, .out = out, .rows = rows, .cols = cols},
      op::contiguous_rows(rows, 2 * cols), op::contiguous_rows(rows, cols));
}

inline Choice naive(const CallParams& p, const Given& given, const op::Gpu&) {
  return op::Start<Config>{{.gate = given.gate, .threads = kThreads, .nested = p.is_nested()},
                           div_ceil(p.rows * p.cols, kThreads)};
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

// How vectorized divides the rows. Few elements spread over all SMs rather than fill a thread.
struct Tiling {
  int group, vectors;
  int64_t tiles;  // of a row
};
inline Tiling tiling(const Params& p, int element_bytes, int num_sms) {
  constexpr int kMany = 2, kBlocksPerSm = 4;
  const int64_t units = p.cols * element_bytes / 16;
  const bool fills_device = p.rows * units >= int64_t(kThreads) * kMany * kBlocksPerSm * num_sms;
  const int vectors = fills_device ? kMany : 1, group = group_of(units, vectors);
  return {group, vectors, div_ceil(units, group * vectors)};
}

inline Choice vectorized(const CallParams& p, const Given& given, const op::Gpu& gpu) {
  const int bytes = given.element_bytes;
  if (p.x_step != 1 || p.out_step != 1) return op::refuse("the last axis must have stride 1");
  if (p.cols * bytes % 16) return op::refuse("half a row must be a multiple of 16 bytes");
  if (!op::rows_vector_aligned(p.x, p.maps[Params::kX], bytes) ||
      !op::rows_vector_aligned(p.out, p.maps[Params::kOut], bytes))
    return op::refuse("rows must begin at multiples of 16 bytes");
  const int64_t max_tiles = p.cols * bytes / 16 / kThreads + 1;
  if (p.rows > op::kMaxBlocks / max_tiles) return op::refuse("more than 2^31 - 1 blocks");
  const auto [group, vectors, tiles] = tiling(p, bytes, gpu.num_sms);
  return op::Start<Config>{{.gate = given.gate,
                            .threads = kThreads,
                            .group = group,
                            .vectors = vectors,
                            .nested = p.is_nested()},
                           div_ceil(p.rows, kThreads / group) * tiles};
}

// Params learn how tiles lie.
inline void set_tiles(CallParams& p, const Given& given, const op::Gpu& gpu) {
  const int64_t tiles = tiling(p, given.element_bytes, gpu.num_sms).tiles;
  p.by_tiles = Divider::of(std::max<int64_t>(tiles, 1));
}

inline constexpr op::Rung<CallParams, Given, Config> kRungs[] = {
    {.name = "vectorized",
     .file = "01_vectorized.cuh",
     .idea = "16-byte accesses, several in flight in both halves of a row",
     .choose = vectorized,
     .adapt = set_tiles},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread an element, any strides",
     .choose = naive,
     .general = op::with_nested<Config>},
};

}  // namespace tensorcraft::kernel::gated_activation

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/row_plan.h"
#include "tensorcraft/ops/moe_permute/params.h"

#include <algorithm>
#include <bit>

// How each rung is chosen and started; host only. moe_sort has a ladder, and moe_permute another
// whose rungs move rows after the best of the first has sorted.
namespace tensorcraft::kernel::moe_permute {

using Choice = op::Choice<Config>;
using Start = op::Start<Config>;

struct Given {
  int element_bytes;
};

// Chunks of a sort: as few as keep most multiprocessors idle no longer than reading their counts
// takes, since every block reads those of all.
inline constexpr int kLeastChunk = 1024, kMostChunks = 128;
inline void cut_entries(SortParams& p) {
  const int32_t least = div_ceil(p.entries, kMostChunks);
  p.chunk = std::max(round_up(least, Config().threads), kLeastChunk);
  p.chunks = std::max(div_ceil(p.entries, p.chunk), 1);
  p.expert_bits = std::bit_width(unsigned(p.experts - 1));
  p.row_map_at = p.chunks > 1 ? int64_t(p.chunks) * p.experts : 0;
  p.sources_at = p.row_map_at + (p.row_map ? 0 : p.entries);
}
inline size_t workspace_bytes(const SortParams& p) {
  return size_t(p.sources_at + (p.sources ? 0 : p.rows)) * sizeof(int32_t);
}

inline Choice naive_sort(const SortParams&, const op::NoGiven&, const op::Gpu&) {
  return Start{{}, 1};
}
inline Choice chunks(const SortParams& p, const op::NoGiven&, const op::Gpu&) {
  return Start{{}, p.chunks};
}

inline constexpr op::Rung<SortParams, op::NoGiven, Config> kSortRungs[] = {
    {.name = "chunks",
     .file = "01_chunks.cuh",
     .idea = "a chunk of ids a block, counted first; ranks by ballots",
     .choose = chunks},
    {.name = "naive",
     .file = "00_naive_sort.cuh",
     .idea = "one block, a thread an expert, which goes through all ids",
     .choose = naive_sort,
     .kernel = "naive_sort"},
};

inline Choice naive(const Params& p, const Given&, const op::Gpu&) {
  const int64_t blocks = div_ceil(p.sort.rows * p.hidden, int64_t(Config().threads));
  return Start{{}, blocks};
}

// The blocks that move tokens, each a piece of one, come before those that write zeros.
inline void cut_rows(Params& p, const Given& given, const op::Gpu&) {
  const int64_t units = div_ceil(p.hidden * given.element_bytes, int64_t(16));
  const int64_t tokens = p.sort.k ? p.sort.entries / p.sort.k : 0;
  p.pieces = int32_t(div_ceil(units, int64_t(Config().threads)));
  p.moving_blocks = tokens * p.pieces;
}

inline Choice rows(const Params& whole, const Given& given, const op::Gpu& gpu) {
  const int bytes = given.element_bytes;
  if ((whole.x_strides[1] != 1 || whole.out_strides[1] != 1) && whole.hidden != 1)
    return op::refuse("rows of x and out must be contiguous");
  if (whole.hidden * bytes % 16) return op::refuse("a row must be a multiple of 16 bytes");
  const bool aligned = op::is_vector_aligned(whole.x) && op::is_vector_aligned(whole.out) &&
                       whole.x_strides[0] * bytes % 16 == 0 &&
                       whole.out_strides[0] * bytes % 16 == 0;
  if (!aligned) return op::refuse("rows must begin at multiples of 16 bytes");
  Params p = whole;
  cut_rows(p, given, gpu);
  const int64_t blocks = p.moving_blocks + div_ceil(p.sort.rows, kZeroRows);
  return Start{{}, blocks};
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "rows",
     .file = "03_rows.cuh",
     .idea = "each token is read once, 16 bytes a thread, and written to all its rows",
     .choose = rows,
     .adapt = cut_rows},
    {.name = "naive",
     .file = "02_naive.cuh",
     .idea = "one thread an element of the sorted rows, any strides",
     .choose = naive},
};

}  // namespace tensorcraft::kernel::moe_permute

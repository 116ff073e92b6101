// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/rung.h"
#include "tensorcraft/ops/csr/params.h"

#include <algorithm>

// How each kernel is started; host only. Every operator of the folder has a ladder of one rung.
namespace tensorcraft::kernel::csr {

using Choice = op::Choice<Config>;
using Start = op::Start<Config>;
using Rung = op::Rung<Params, op::NoGiven, Config>;

// As many blocks as give each of `count` a thread, or a warp.
inline Choice one_each(int64_t count, int threads_of_each = 1) {
  const int64_t blocks = div_ceil(count, int64_t(Config().threads / threads_of_each));
  if (blocks > op::kMaxBlocks) return op::refuse("needs 2^31 blocks or more");
  return Start{{}, std::max<int64_t>(blocks, 1)};
}

inline Choice report(const Params& p, const op::NoGiven&, const op::Gpu&) {
  const int64_t blocks = div_ceil(p.a.rows, int64_t(Config().threads / 32));
  return Start{{}, std::clamp<int64_t>(blocks, 1, kFactBlocks)};
}
inline Choice starts(const Params& p, const op::NoGiven&, const op::Gpu&) {
  return one_each(merge_tiles(p.a.rows, p.a.stored) + 1);
}
// Of as many counts as the matrix has rows.
inline Choice offsets(const Params& p, const op::NoGiven&, const op::Gpu&) {
  return Start{{}, std::max<int64_t>(div_ceil(p.a.rows, kChunk), 1)};
}
inline Choice warp_a_row(const Params& p, const op::NoGiven&, const op::Gpu&) {
  return one_each(p.a.rows, 32);
}
inline Choice warp_a_column(const Params& p, const op::NoGiven&, const op::Gpu&) {
  return one_each(p.a.cols, 32);
}
inline Choice thread_an_element(const Params& p, const op::NoGiven&, const op::Gpu&) {
  return one_each(p.a.stored);
}

inline constexpr Rung kReportRungs[] = {
    {.name = "naive",
     .file = "report.cuh",
     .idea = "a warp a row, whose lanes compare neighbouring indices; then one block",
     .choose = report,
     .kernel = "report"}};
inline constexpr Rung kStartsRungs[] = {
    {.name = "naive",
     .file = "starts.cuh",
     .idea = "a thread a tile, a binary search among the ends of rows",
     .choose = starts,
     .kernel = "starts"}};
inline constexpr Rung kOffsetsRungs[] = {
    {.name = "naive",
     .file = "offsets.cuh",
     .idea = "a warp counts a row; a block adds up the counts of a chunk and those in front of it",
     .choose = offsets,
     .kernel = "offsets"}};
inline constexpr Rung kFromDenseRungs[] = {
    {.name = "naive",
     .file = "from_dense.cuh",
     .idea = "a warp a row, a ballot for the places of 32 elements",
     .choose = warp_a_row,
     .kernel = "from_dense"}};
inline constexpr Rung kToDenseRungs[] = {{.name = "naive",
                                          .file = "to_dense.cuh",
                                          .idea = "a warp a row: zeros, then its elements",
                                          .choose = warp_a_row,
                                          .kernel = "to_dense"}};
// Its other launches have a warp a row and a thread an element.
inline Choice transpose(const Params& p, const op::NoGiven& given, const op::Gpu& gpu) {
  for (const Choice& other : {warp_a_row(p, given, gpu), thread_an_element(p, given, gpu)})
    if (!other.refusal.empty()) return other;
  return warp_a_column(p, given, gpu);
}
// Blocks of chunks have a counter for each column in shared memory.
inline constexpr int64_t kMostCountedColumns = 24576;
inline int counters_bytes(const Params& p) { return int(std::max<int64_t>(p.a.cols, 1)) * 4; }

// Two blocks a multiprocessor, if there are more elements in a chunk than counters.
inline void cut_chunks(Params& p, const op::NoGiven&, const op::Gpu& gpu) {
  constexpr int64_t kWhole = 1024;  // elements that a block takes at a time
  const int64_t least = std::max<int64_t>(4 * kWhole, p.a.cols);
  const int64_t most = 2 * std::max(gpu.num_sms, 1);
  const int64_t chunks = std::clamp<int64_t>(p.a.stored / least, 1, most);
  p.chunk = round_up(std::max<int64_t>(div_ceil(p.a.stored, chunks), 1), kWhole);
  p.chunks = std::max<int64_t>(div_ceil(p.a.stored, p.chunk), 1);
}
inline Start start_of_chunks(const Params& p) {
  return {.config = {}, .blocks = p.chunks, .shared_bytes = counters_bytes(p)};
}
inline Choice place_chunks(const Params& p, const op::NoGiven& given, const op::Gpu& gpu) {
  if (p.a.cols > kMostCountedColumns) return op::refuse("needs at most 24,576 columns");
  if (p.a.stored >= int64_t(1) << 32) return op::refuse("needs fewer than 2^32 stored elements");
  if (gpu.shared_bytes_per_block && counters_bytes(p) > gpu.shared_bytes_per_block)
    return op::refuse("needs more shared memory than a block has");
  Params cut = p;
  cut_chunks(cut, given, gpu);
  return start_of_chunks(cut);
}
inline Choice warp_32_columns(const Params& p, const op::NoGiven&, const op::Gpu&) {
  return Start{{}, std::max<int64_t>(div_ceil(p.a.cols, int64_t(32)), 1)};
}

inline constexpr Rung kTransposeRungs[] = {
    {.name = "chunks",
     .file = "place_chunks.cuh",
     .idea = "a counting sort: a block a chunk, whose elements go to their places in order",
     .choose = place_chunks,
     .kernel = "place_chunks",
     .adapt = cut_chunks},
    {.name = "naive",
     .file = "sort_columns.cuh",
     .idea = "elements are counted, go to their columns in any order, and each column is sorted",
     .choose = transpose,
     .kernel = "sort_columns"}};

}  // namespace tensorcraft::kernel::csr

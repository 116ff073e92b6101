// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/rung.h"
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
  return Start{{}, std::max<int64_t>(blocks, 1)};
}

inline Choice report(const Params& p, const op::NoGiven&, const op::Gpu&) {
  const int64_t blocks = div_ceil(p.a.rows, int64_t(Config().threads / 32));
  return Start{{}, std::clamp<int64_t>(blocks, 1, kFactBlocks)};
}
inline Choice starts(const Params& p, const op::NoGiven&, const op::Gpu&) {
  return one_each(merge_tiles(p.a.rows, p.a.stored) + 1);
}
// Sums as many counts as the matrix has rows.
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
// So few blocks that the rows they are at are less than half of the cache of the GPU.
inline Choice fill_rows(const Params& p, const op::NoGiven&, const op::Gpu& gpu) {
  constexpr int64_t kBlocksOfSm = 4, kLeastColumns = 1024;
  const int64_t most = kBlocksOfSm * std::max(gpu.num_sms, 1);
  const Start start{{}, std::clamp<int64_t>(p.a.rows, 1, most)};
  if (p.a.cols < kLeastColumns) return {start, "a row is too short for a block"};
  return start;
}
inline constexpr Rung kToDenseRungs[] = {{.name = "blocks",
                                          .file = "fill_rows.cuh",
                                          .idea = "a block a row, few at a time: elements find its "
                                                  "zeros in the cache",
                                          .choose = fill_rows,
                                          .kernel = "fill_rows"},
                                         {.name = "naive",
                                          .file = "to_dense.cuh",
                                          .idea = "a warp a row: zeros, then its elements",
                                          .choose = warp_a_row,
                                          .kernel = "to_dense"}};
// Blocks of chunks have a counter for each column in shared memory.
inline constexpr int64_t kMostCountedColumns = 24576;
inline int counters_bytes(const Params& p) { return int(std::max<int64_t>(p.a.cols, 1)) * 4; }

// Chunks that fill the multiprocessors in whole rounds, two blocks each, and buckets that are not
// quite a part, or as many as there may be.
inline constexpr Config kBucketConfig{.threads = 512};
inline void cut_buckets(Params& p, const op::NoGiven&, const op::Gpu& gpu) {
  constexpr int64_t kMostColumns = 256;     // of a bucket, if elements are few
  constexpr int64_t kLeastElements = 1024;  // of a chunk
  const int64_t most = elements_of_block(kBucketConfig), room = 2 * std::max(gpu.num_sms, 1);
  const int64_t rounds = std::max<int64_t>(div_ceil(p.a.stored, most * room), 1);
  p.chunk = round_up(std::max(div_ceil(p.a.stored, rounds * room), kLeastElements), int64_t(32));
  p.chunks = std::max<int64_t>(div_ceil(p.a.stored, p.chunk), 1);
  const int64_t wanted = std::max(p.a.stored * 5 / (most * 4), p.a.cols / kMostColumns);
  const int64_t columns = div_ceil(p.a.cols, std::clamp<int64_t>(wanted, 1, kMostKeys));
  p.low_bits = 0;
  while (int64_t(1) << p.low_bits < columns) ++p.low_bits;
  p.buckets = int(std::max<int64_t>(div_ceil(p.a.cols, int64_t(1) << p.low_bits), 1));
  p.bucket_bits = 0;
  while (1 << p.bucket_bits < p.buckets) ++p.bucket_bits;
}
// Blocks that there is room for, with several parts each.
inline int64_t blocks_of_counts(const Params& p, const op::Gpu& gpu) {
  return std::min<int64_t>(most_parts(p, kBucketConfig), 2 * std::max(gpu.num_sms, 1));
}
inline Start start_of_buckets(int64_t blocks) {
  return {.config = kBucketConfig,
          .blocks = blocks,
          .min_blocks = 2,
          .shared_bytes = bucket_shared_bytes(kBucketConfig)};
}
inline Choice place_parts(const Params& p, const op::NoGiven& given, const op::Gpu& gpu) {
  if (p.a.cols > kMostKeys * kMostKeys) return op::refuse("needs at most 2^20 columns");
  if (p.a.stored >= int64_t(1) << 31) return op::refuse("needs fewer than 2^31 stored elements");
  Params cut = p;
  cut_buckets(cut, given, gpu);
  if (p.a.rows > int64_t(1) << (32 - cut.low_bits))
    return op::refuse("needs rows, and columns of a bucket, that 32 bits hold");
  return start_of_buckets(most_parts(cut, kBucketConfig));
}

// Buckets of which a row has fewer than 32 elements in the mean, and at most 512 tiles of each.
inline constexpr Config kTileConfig{.threads = 512}, kTileCountConfig{.threads = 1024};
inline void cut_tiles(Params& p, const op::NoGiven&, const op::Gpu&) {
  constexpr int64_t kMostOfRow = 26, kMostTiles = 512;
  constexpr int kLeastBits = 5;
  p.low_bits = 9;
  static_assert(kTileColumns == 1 << 9);
  while (p.low_bits > kLeastBits && p.a.stored << p.low_bits > kMostOfRow * p.a.rows * p.a.cols)
    --p.low_bits;
  p.buckets = int(std::max<int64_t>(div_ceil(p.a.cols, int64_t(1) << p.low_bits), 1));
  const int64_t rows =
      round_up(std::max<int64_t>(div_ceil(p.a.rows, kMostTiles), 1), int64_t(kTileRows));
  p.chunk = rows / kChunksOfTile;
  p.chunks = std::max<int64_t>(div_ceil(p.a.rows, rows), 1) * kChunksOfTile;
}
inline Start start_of_tile_counts(const Params& p) {
  return {.config = kTileCountConfig, .blocks = p.chunks, .shared_bytes = counters_bytes(p)};
}
inline Choice place_tiles(const Params& p, const op::NoGiven& given, const op::Gpu& gpu) {
  constexpr int64_t kLeastOfRow = 8, kMostRows = int64_t(1) << 17;
  if (p.a.cols > kMostCountedColumns) return op::refuse("needs at most 24,576 columns");
  if (p.a.stored >= int64_t(1) << 30) return op::refuse("needs fewer than 2^30 stored elements");
  const int bytes = tile_shared_bytes(kTileConfig);
  Params cut = p;
  cut_tiles(cut, given, gpu);
  const Start start{.config = kTileConfig,
                    .blocks = cut.chunks / kChunksOfTile * cut.buckets,
                    .min_blocks = 2,
                    .shared_bytes = bytes};
  if (p.a.rows < kTileRows) return {start, "rows are fewer than those of a tile"};
  if (p.a.rows > kMostRows) return {start, "a tile would go over many rows, one after another"};
  if (p.a.stored << cut.low_bits < kLeastOfRow * p.a.rows * p.a.cols)
    return {start, "rows have few elements of a bucket"};
  return start;
}
inline Choice warp_32_columns(const Params& p, const op::NoGiven&, const op::Gpu&) {
  return Start{{}, std::max<int64_t>(div_ceil(p.a.cols, int64_t(32)), 1)};
}

inline constexpr Rung kTransposeRungs[] = {
    {.name = "tiles",
     .file = "place_tiles.cuh",
     .idea = "tiles of rows and columns are sorted by column in shared memory, and written once",
     .choose = place_tiles,
     .spills = "sizes of a tile wait in memory while the registers of a block, of which two fit, "
               "hold its elements",
     .kernel = "place_tiles",
     .adapt = cut_tiles},
    {.name = "buckets",
     .file = "place_parts.cuh",
     .idea = "chunks are sorted by buckets of columns, and buckets by columns, in shared memory",
     .choose = place_parts,
     .spills = "a sort of elements of 2 bytes keeps a few ranks in memory, so that two blocks fit",
     .kernel = "place_parts",
     .adapt = cut_buckets},
    {.name = "naive",
     .file = "sort_columns.cuh",
     .idea = "elements are counted, go to their columns in any order, and each column is sorted",
     .choose = warp_a_column,
     .kernel = "sort_columns"}};

}  // namespace tensorcraft::kernel::csr

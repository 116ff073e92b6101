// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/swizzle.cuh"
#include "tensorcraft/device/tile/block_tile.cuh"
#include "tensorcraft/device/tile/boxed_tile.cuh"
#include "tensorcraft/device/tile/stage_cursor.cuh"
#include "tensorcraft/device/tile/swizzled_tile.cuh"
#include "tensorcraft/simt/launch.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace tensorcraft {
namespace {

// How often the blocks of a grid compute each tile of 16 x 32, batch by batch and row by row.
template <int kCluster>
std::vector<int> blocks_of_tiles(int64_t m, int64_t n, int batches) {
  const int64_t rows = div_ceil(m, 16), cols = div_ceil(n, 32 * kCluster) * kCluster;
  struct Params {
    int64_t m, n, rows, cols;
    std::vector<std::atomic<int>> counts;
  } params{m, n, rows, cols, std::vector<std::atomic<int>>(size_t(batches * rows * cols))};
  Params* const pointer = &params;
  simt::launch(
      {.name = "tiles",
       .grid = {unsigned(batches * rows * cols)},
       .block = {1},
       .cluster = {kCluster}},
      [](const void* from) {
        Params& p = **static_cast<Params* const*>(from);
        const BlockTile tile = block_tile<16, 32, kCluster>(p.m, p.n);
        const int64_t at = (tile.batch * p.rows + tile.row / 16) * p.cols + tile.col / 32;
        ++p.counts.at(size_t(at));
      },
      &pointer);
  return {params.counts.begin(), params.counts.end()};
}

TEST(BlockTile, CoversEachTileOnce) {
  for (const auto& [m, n] :
       std::vector<std::pair<int, int>>{{1, 1}, {16, 32}, {17, 33}, {700, 100}, {100, 1000}}) {
    for (const int count : blocks_of_tiles<1>(m, n, 3)) ASSERT_EQ(count, 1) << m << " x " << n;
    for (const int count : blocks_of_tiles<2>(m, n, 3)) ASSERT_EQ(count, 1) << m << " x " << n;
  }
}

// The chunks of every line have places of their own, and the chunks n of any 8 lines that ldmatrix
// reads at once are in 8 bank groups.
template <class Tile>
void expect_free_of_conflicts(int lines, int chunks, int bytes_per_place) {
  std::set<int> places;
  for (int n = 0; n < chunks; ++n) {
    std::set<int> groups;
    for (int line = 0; line < lines; ++line) {
      const int place = Tile::place(line, n) / bytes_per_place;
      EXPECT_TRUE(places.insert(place).second) << "line " << line << ", chunk " << n;
      groups.insert(place % 8);
      if (line % 8 != 7) continue;
      EXPECT_EQ(groups.size(), 8u) << "lines to " << line << ", chunk " << n;
      groups.clear();
    }
  }
  EXPECT_EQ(*places.rbegin(), lines * chunks - 1);
}

TEST(SwizzledTile, HasNoBankConflicts) {
  expect_free_of_conflicts<SwizzledTile<bf16, 16, 16>>(16, 2, 1);
  expect_free_of_conflicts<SwizzledTile<bf16, 32, 32>>(32, 4, 1);
  expect_free_of_conflicts<SwizzledTile<bf16, 32, 64>>(32, 8, 1);
  expect_free_of_conflicts<SwizzledTile<float, 16, 64>>(16, 16, 1);
}

TEST(BoxedTile, IsTheSwizzleOfTheCopyEngine) {
  using Tile = BoxedTile<bf16, 32, 128>;
  expect_free_of_conflicts<Tile>(32, 16, kVectorBytes);
  for (int n = 0; n < 16; ++n) {
    for (int line = 0; line < 32; ++line) {
      const uint32_t plain = uint32_t(n / 8 * 32 + line) * 128 + uint32_t(n % 8) * 16;
      EXPECT_EQ(uint32_t(Tile::place(line, n)), swizzled(Swizzle::bytes_128, plain));
    }
  }
}

TEST(StageCursor, ChangesItsParityInEachRound) {
  StageCursor<3> read, fill{2, 1};
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(read.stage, i % 3);
    EXPECT_EQ(read.parity, uint32_t(i / 3 % 2));
    EXPECT_EQ(fill.stage, (i + 2) % 3);
    EXPECT_EQ(fill.parity, uint32_t(((i + 2) / 3 + 1) % 2)) << "a fresh barrier has passed 1";
    read.advance();
    fill.advance();
  }
}

template <int kStages>
void expect_counts_are_steps() {
  for (int start = 0; start < 2 * kStages; ++start) {
    StageCursor<kStages> one_by_one{start % kStages, uint32_t(start / kStages)};
    const StageCursor<kStages> from = one_by_one;
    for (uint32_t count = 0; count < 4 * kStages + 3; ++count) {
      StageCursor<kStages> at_once = from;
      at_once.advance(count);
      EXPECT_EQ(at_once.stage, one_by_one.stage)
          << kStages << " stages, " << count << " from " << start;
      EXPECT_EQ(at_once.parity, one_by_one.parity)
          << kStages << " stages, " << count << " from " << start;
      one_by_one.advance();
    }
  }
}

TEST(StageCursor, AdvancesByACountAsByThatManySteps) {
  expect_counts_are_steps<1>();
  expect_counts_are_steps<3>();
  expect_counts_are_steps<4>();
  expect_counts_are_steps<8>();
}

// Every tile of every entry once, and `most` rows of tiles side by side.
template <int kTileM, int kTileN>
void expect_order(int64_t m, int64_t n, uint32_t batches, int64_t most) {
  const TileOrder<kTileM, kTileN> order(m, n);
  EXPECT_EQ(order.rows, div_ceil(m, kTileM));
  EXPECT_EQ(order.cols, div_ceil(n, kTileN));
  const uint32_t tiles = order.rows * order.cols;
  std::set<std::pair<int64_t, int64_t>> seen;
  for (uint32_t number = 0; number < tiles * batches; ++number) {
    const BlockTile tile = order.at(number);
    EXPECT_EQ(tile.batch, number / tiles);
    EXPECT_TRUE(tile.row % kTileM == 0 && tile.row < m && tile.col % kTileN == 0 && tile.col < n);
    EXPECT_TRUE(seen.insert({tile.row, tile.col}).second) << number;
    // A group of rows ends before the next begins.
    const int64_t group = tile.row / kTileM / most;
    EXPECT_EQ(number % tiles / (most * order.cols), group) << number;
    if ((number + 1) % tiles == 0) seen.clear();
  }
}

TEST(TileOrder, HasEachTileOnceAndGroupsOfRows) {
  for (const auto& [m, n] :
       std::vector<std::pair<int, int>>{{1, 1}, {64, 64}, {65, 129}, {700, 100}, {100, 3000}}) {
    expect_order<64, 64>(m, n, 1, 8);
    expect_order<16, 32>(m, n, 3, 16);
    expect_order<128, 320>(m, n, 2, 16);
  }
}

}  // namespace
}  // namespace tensorcraft

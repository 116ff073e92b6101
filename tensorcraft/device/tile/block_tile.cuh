// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"
#if !TC_PTX
#include "tensorcraft/device/host.h"
#endif

// Which tile of a batched product's result a block computes.
namespace tensorcraft {

// A block's first row and column of the result, and the number of its batch entry.
struct BlockTile {
  int64_t row, col;
  uint32_t batch;
};

TC_DEVICE int min_of(int64_t left, int limit) { return left < limit ? int(left) : limit; }

// The order of the tiles of m x n results, batch by batch. Within an entry 8 rows of tiles advance
// together, 16 if a tile is wide, so the blocks that run at one time cover a nearly square part of
// the result and share rows of A and columns of B in the L2 cache. A grid has fewer than 2^31
// blocks, so 32 bits hold every count.
template <int kTileM, int kTileN>
struct TileOrder {
  uint32_t rows, cols;  // of tiles

  TC_DEVICE TileOrder(int64_t m, int64_t n)
      : rows(uint32_t(div_ceil(m, kTileM))), cols(uint32_t(div_ceil(n, kTileN))) {}

  TC_DEVICE BlockTile at(uint32_t number) const {
    const uint32_t batch = number / (rows * cols), index = number % (rows * cols);
    constexpr uint32_t most = kTileN >= 2 * kTileM ? 16 : 8;
    const uint32_t group_rows = rows < most ? rows : most;
    const uint32_t first = index / (group_rows * cols) * group_rows;
    const uint32_t in_rows = rows - first < group_rows ? rows - first : group_rows;
    const uint32_t in_group = index - first * cols;
    return {.row = int64_t(first + in_group % in_rows) * kTileM,
            .col = int64_t(in_group / in_rows) * kTileN,
            .batch = batch};
  }
};

// The tile of a block. The blocks of a cluster have neighbouring tiles of one row and count as one
// wide tile.
template <int kBlockM, int kBlockN, int kCluster = 1>
TC_DEVICE BlockTile block_tile(int64_t m, int64_t n) {
  const TileOrder<kBlockM, kBlockN * kCluster> order(m, n);
  BlockTile tile = order.at(blockIdx.x / kCluster);
  tile.col += int64_t(blockIdx.x % kCluster) * kBlockN;
  return tile;
}

}  // namespace tensorcraft

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

// Tiles of m x n results are numbered batch by batch. Within an entry 8 rows of tiles advance
// together, 16 if a tile is wide, so the blocks that run at one time cover a nearly square part of
// the result and share rows of A and columns of B in the L2 cache. A grid has fewer than 2^31
// blocks, so 32 bits hold every count. The blocks of a cluster have neighbouring tiles of one row
// and count as one wide tile.
template <int kBlockM, int kBlockN, int kCluster = 1>
TC_DEVICE BlockTile block_tile(int64_t m, int64_t n) {
  constexpr int width = kBlockN * kCluster;
  const uint32_t tile_rows = uint32_t(div_ceil(m, kBlockM));
  const uint32_t tile_cols = uint32_t(div_ceil(n, width));
  const uint32_t number = blockIdx.x / kCluster, rank = blockIdx.x % kCluster;
  const uint32_t batch = number / (tile_rows * tile_cols);
  const uint32_t index = number % (tile_rows * tile_cols);
  constexpr uint32_t most = width >= 2 * kBlockM ? 16 : 8;
  const uint32_t group_rows = tile_rows < most ? tile_rows : most;
  const uint32_t first = index / (group_rows * tile_cols) * group_rows;
  const uint32_t rows = tile_rows - first < group_rows ? tile_rows - first : group_rows;
  const uint32_t in_group = index - first * tile_cols;
  return {.row = int64_t(first + in_group % rows) * kBlockM,
          .col = int64_t(in_group / rows) * width + int64_t(rank) * kBlockN,
          .batch = batch};
}

}  // namespace tensorcraft

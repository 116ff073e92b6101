// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/params.h"

namespace tensorcraft::kernel::gemm {

// Where a block works: its first row and column of D, and the place of its batch entry.
struct Tile {
  int64_t row, col;
  uint32_t batch;
};

TC_DEVICE int min_of(int64_t left, int limit) { return left < limit ? int(left) : limit; }

// Tiles are numbered batch by batch. Within an entry 8 rows of tiles advance together, 16 where a
// tile is wide, so the blocks that run at one time cover a nearly square part of D and share rows
// of A and columns of B in the L2 cache. A grid has fewer than 2^31 blocks, so 32 bits hold every
// count. The blocks of a cluster have neighbouring tiles of one row and count as one wide tile.
template <Config C, int kCluster = 1>
TC_DEVICE Tile block_tile(const Params& p) {
  constexpr int width = C.block_n * kCluster;
  const uint32_t tile_rows = uint32_t(div_ceil(p.m, C.block_m));
  const uint32_t tile_cols = uint32_t(div_ceil(p.n, width));
  const uint32_t number = blockIdx.x / kCluster, rank = blockIdx.x % kCluster;
  const uint32_t batch = number / (tile_rows * tile_cols);
  const uint32_t index = number % (tile_rows * tile_cols);
  constexpr uint32_t most = width >= 2 * C.block_m ? 16 : 8;
  const uint32_t group_rows = tile_rows < most ? tile_rows : most;
  const uint32_t first = index / (group_rows * tile_cols) * group_rows;
  const uint32_t rows = tile_rows - first < group_rows ? tile_rows - first : group_rows;
  const uint32_t in_group = index - first * tile_cols;
  return {.row = int64_t(first + in_group % rows) * C.block_m,
          .col = int64_t(in_group / rows) * width + int64_t(rank) * C.block_n,
          .batch = batch};
}

// The first element of a matrix's entry number `batch`, counted row-major over batch_shape.
template <class T>
TC_DEVICE T* batch_entry(const Params& p, const Matrix& x, uint32_t batch) {
  int64_t offset = 0;
  for (int i = p.batch_rank - 1; i >= 0; --i) {
    offset += batch % p.batch_shape[i] * x.batch_strides[i];
    batch /= p.batch_shape[i];
  }
  return static_cast<T*>(x.data) + offset;
}

// Copies the part of a matrix that starts at `from`, `rows` x `cols` of it inside the matrix.
template <Config C, Layout L, int Rows, int Cols, class T>
TC_DEVICE void copy_tile(float (&tile)[Rows][Cols], const T* from, const Matrix& x, int64_t rows,
                         int64_t cols) {
#pragma unroll
  for (int n = 0; n < div_ceil(Rows * Cols, C.threads); ++n) {
    const int i = threadIdx.x + n * C.threads;
    if (Rows * Cols % C.threads != 0 && i >= Rows * Cols) break;
    const int row = L == Layout::row_major ? i / Cols : i % Rows;
    const int col = L == Layout::row_major ? i % Cols : i / Rows;
    const bool inside = row < rows && col < cols;
    tile[row][col] = inside ? float(from[row * x.row_stride + col * x.col_stride]) : 0.0f;
  }
}

}  // namespace tensorcraft::kernel::gemm

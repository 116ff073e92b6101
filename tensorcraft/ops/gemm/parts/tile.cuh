// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/tile/block_tile.cuh"
#include "tensorcraft/device/tile/column_order.h"
#include "tensorcraft/ops/gemm/groups/groups.cuh"
#include "tensorcraft/ops/gemm/params.h"

namespace tensorcraft::kernel::gemm {

template <Config C>
using Tile = Select<C.has_groups == kGroupsOfK, DepthTile,
                    Select<C.has_groups == kGroupsOfRows, GroupTile, BlockTile>>;

// Rows and columns of D. Of a grouped product there may be none.
template <Config C, int kCluster = 1>
TC_DEVICE Tile<C> block_tile(const ParamsOf<C>& p) {
  static_assert(!C.has_groups || kCluster == 1);
  if constexpr (C.has_groups == kGroupsOfK) {
    return depth_tile(p, tensorcraft::block_tile<C.block_m, tile_columns(C)>(p.m, p.n));
  } else if constexpr (C.has_groups) {
    return GroupedTiles<C.block_m, tile_columns(C)>(p).find(blockIdx.x);
  } else {
    return tensorcraft::block_tile<C.block_m, tile_columns(C), kCluster>(p.m, p.n);
  }
}
TC_DEVICE bool is_none(const BlockTile&) { return false; }
TC_DEVICE bool is_none(const GroupTile& tile) { return tile.is_none(); }

// The row behind the last one that a tile may have.
TC_DEVICE int64_t row_end(const Params& p, const BlockTile&) { return p.m; }
TC_DEVICE int64_t row_end(const Params&, const GroupTile& tile) { return tile.row_end; }

// The part of k that a tile is the sum of.
TC_DEVICE int64_t k_begin(const BlockTile&) { return 0; }
TC_DEVICE int64_t k_end(const Params& p, const BlockTile&) { return p.k; }
TC_DEVICE int64_t k_begin(const DepthTile& tile) { return tile.k_begin; }
TC_DEVICE int64_t k_end(const Params&, const DepthTile& tile) { return tile.k_end; }

// How the columns of a tile of B are those of B from the tile's on: a gated tile continues, after
// its first half, with the columns n later.
template <Config C>
using ColumnOrder = Select<C.gated != 0, TwoHalves<C.block_n>, InOrder>;

// Elements from a column of the first half to that of the second.
template <Config C>
TC_DEVICE int64_t half_jump(const Params& p) {
  return C.gated ? p.n * p.b.col_stride : 0;
}

// Elements before a matrix's entry number `batch`, counted row-major over batch_shape, and the
// first of the entry.
template <class AnyParams>
TC_DEVICE int64_t batch_offset(const AnyParams& p, const Matrix& x, uint32_t batch) {
  int64_t offset = 0;
  for (int i = p.batch_rank - 1; i >= 0; --i) {
    offset += batch % p.batch_shape[i] * x.batch_strides[i];
    batch /= p.batch_shape[i];
  }
  return offset;
}
template <class T, class AnyParams>
TC_DEVICE T* batch_entry(const AnyParams& p, const Matrix& x, uint32_t batch) {
  return static_cast<T*>(x.data) + batch_offset(p, x, batch);
}

// The first elements of A and B that a tile needs.
template <class T, class AnyTile>
TC_DEVICE T* a_of_tile(const Params& p, const AnyTile& tile) {
  return batch_entry<T>(p, p.a, tile.batch) + tile.row * p.a.row_stride +
         k_begin(tile) * p.a.col_stride;
}
template <class T, class AnyTile>
TC_DEVICE T* b_of_tile(const Params& p, const AnyTile& tile) {
  return batch_entry<T>(p, p.b, tile.batch) + tile.col * p.b.col_stride +
         k_begin(tile) * p.b.row_stride;
}

// The first scale of A and of B for a batch entry: groups may have their own.
template <Config C>
TC_DEVICE const float* a_scale_of(const ParamsOf<C>& p, uint32_t batch) {
  if constexpr (C.has_groups)
    return p.a_scale + batch * p.a_scale_group;
  else
    return p.a_scale;
}
template <Config C>
TC_DEVICE const float* b_scale_of(const ParamsOf<C>& p, uint32_t batch) {
  if constexpr (C.has_groups)
    return p.b_scale + batch * p.b_scale_group;
  else
    return p.b_scale;
}

template <class AnyParams>
TC_DEVICE uint32_t batch_count(const AnyParams& p) {
  uint32_t count = 1;
  for (int i = 0; i < p.batch_rank; ++i) count *= p.batch_shape[i];
  return count;
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

// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a warp has an equal part of the merge of row ends and stored elements (csr.h),
// which it keeps in shared memory, not a row:
//   steps of a warp = 256, whatever the rows are like.
// So a long row is many warps' work, and short ones cost a warp no start of their own: four rows of
// x are on their way, whichever rows of the matrix they are for. Rows that cross warps are joined
// by finish.cuh in a fixed order, so results repeat to the bit.
#include "tensorcraft/ops/spmm/element.cuh"

namespace tensorcraft::kernel::spmm {

// A warp's part of the matrix. A column below 0 is outside it.
template <class I>
struct WarpTile {
  I columns[kWarpTile];
  float elements[kWarpTile];
  int ends[kWarpTile];
};
template <class I, int kWarps>
struct WarpTiles {
  WarpTile<I> of[kWarps];
};

// Loads the tile: the elements from `first` on, and where rows from `row` on end.
template <class T, class I>
TC_DEVICE void load_tile(const Params& p, WarpTile<I>& tile, int64_t first, int stored, int64_t row,
                         int rows) {
  const int lane = int(threadIdx.x) % kWarpSize;
  for (int i = lane; i < stored; i += kWarpSize) {
    const I column = static_cast<const I*>(p.a.indices)[first + i];
    tile.columns[i] = is_column(p.a, column) ? column : I(-1);
    tile.elements[i] = float(static_cast<const T*>(p.a.data)[first + i]);
  }
  for (int i = lane; i < rows; i += kWarpSize) {
    const int64_t end = int64_t(row_begin<I>(p.a, row + i + 1)) - first;
    tile.ends[i] = end < 0 ? 0 : end < stored ? int(end) : stored;
  }
  __syncwarp();
}

struct MergePath {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    constexpr int kWarps = C.threads / kWarpSize;
    using S = SemiringOf<ParamsOf<C>, C.semiring>;
    const int lane = int(threadIdx.x) % kWarpSize;
    auto& shared = static_shared<WarpTiles<I, kWarps>>().of[threadIdx.x / kWarpSize];
    const int64_t warp = int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarpSize;
    const int64_t part = warp / tiles(p), tile = warp - part * tiles(p);
    if (part >= column_parts(p, C.vector)) return;
    const int64_t row = starts(p)[tile], first = steps_before(p, tile) - row;
    const int64_t next = starts(p)[tile + 1] - row;
    const int rows = next < 0 ? 0 : next < kWarpTile ? int(next) : kWarpTile;
    const int64_t rest = steps_before(p, tile + 1) - steps_before(p, tile) - rows;
    const int stored = rest < 0 ? 0 : int(rest);
    load_tile<T, I>(p, shared, first, stored, row, rows);

    const S semiring(p);
    Totals<T, C.vector, S> totals(semiring, part * kWarpColumns<C> + lane * C.vector);
    if (totals.column >= p.columns) return;
    const bool began_before = int64_t(row_begin<I>(p.a, row)) < first;
    int r = 0, end = rows ? shared.ends[0] : stored;
    // The row of the totals ends: it is written, or a part of it if it began in an earlier tile.
    const auto end_row = [&] {
      if (r > 0 || !began_before)
        totals.store_row(p, row + r);
      else
        store_part(p, tile_heads(p), tile, totals);
      totals.clear();
      end = ++r < rows ? shared.ends[r] : stored;
    };
    for (int k = 0; k < stored; k += kAhead) {
      Packed<T, C.vector> x[kAhead];
#pragma unroll
      for (int j = 0; j < kAhead; ++j)
        if (k + j < stored && shared.columns[k + j] >= 0)
          x[j] = Packed<T, C.vector>::load(row_of_x<T>(p, shared.columns[k + j]) + totals.column);
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
        if (k + j >= stored) continue;
        while (r < rows && end <= k + j) end_row();
        if (shared.columns[k + j] >= 0) totals.add(x[j], shared.elements[k + j]);
      }
    }
    const int begin = rows ? shared.ends[rows - 1] : 0;
    while (r < rows) end_row();
    if (begin < stored) store_part(p, tile_tails(p), tile, totals);
  }

 private:
  template <class T, int N, class S>
  TC_DEVICE static void store_part(const Params& p, float* parts, int64_t tile,
                                   const Totals<T, N, S>& totals) {
    for (int i = 0; i < N; ++i)
      if (totals.column + i < p.columns)
        parts[tile * p.columns + totals.column + i] = totals.values[i];
  }
};

}  // namespace tensorcraft::kernel::spmm

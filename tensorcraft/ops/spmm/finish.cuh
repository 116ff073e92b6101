// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rows that began in an earlier tile of 02_merge_path.cuh than they end in: a warp has the tile
// in which a row ends, and adds what the tiles before have of it, in their order.
#include "tensorcraft/ops/spmm/element.cuh"

namespace tensorcraft::kernel::spmm {

struct Finish {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    const int lane = int(threadIdx.x) % kWarpSize;
    const int64_t tile = int64_t(blockIdx.x) * (C.threads / kWarpSize) + threadIdx.x / kWarpSize;
    if (tile >= tiles(p)) return;
    const int64_t row = starts(p)[tile], begin = int64_t(row_begin<I>(p.a, row));
    if (starts(p)[tile + 1] <= row || begin >= steps_before(p, tile) - row) return;
    const SemiringOf<ParamsOf<C>, C.semiring> semiring(p);
    for (int64_t column = lane; column < p.columns; column += kWarpSize) {
      float total = semiring.identity();
#pragma unroll 4
      for (int64_t t = (row + begin) / kWarpTile; t < tile; ++t)
        total = semiring.reduce(total, tile_tails(p)[t * p.columns + column]);
      store<T>(p, row, column, semiring.reduce(total, tile_heads(p)[tile * p.columns + column]));
    }
  }
};

}  // namespace tensorcraft::kernel::spmm

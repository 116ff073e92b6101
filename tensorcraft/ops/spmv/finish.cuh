// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rows that began in an earlier tile of 03_merge_path.cuh than they end in: a warp has the tile
// in which a row ends, and adds what the tiles before have of it, in a fixed order.
#include "tensorcraft/ops/spmv/element.cuh"

namespace tensorcraft::kernel::spmv {

struct Finish {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    const int lane = int(threadIdx.x) % kWarpSize;
    const int64_t tile = int64_t(blockIdx.x) * (C.threads / kWarpSize) + threadIdx.x / kWarpSize;
    if (tile >= tiles(p)) return;
    const int64_t row = first_row(p, tile), begin = int64_t(row_begin<I>(p.a, row));
    if (first_row(p, tile + 1) <= row || begin >= steps_before(p, tile) - row) return;
    const SemiringOf<ParamsOf<C>, C.semiring> semiring(p);
    LongTotal own(semiring);
    for (int64_t t = (row + begin) / kMergeTile + lane; t < tile; t += kWarpSize)
      own.add(tile_tails(p)[t]);
    const float total = reduce_lanes<kWarpSize>(semiring, own.value());
    if (lane == 0) store<T>(p, row, semiring.reduce(total, tile_heads(p)[tile]));
  }
};

}  // namespace tensorcraft::kernel::spmv

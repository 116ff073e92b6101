// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: blocks stay and walk over rows. Rows have three places in shared memory: one
// waits to be stored, one is added up, the next arrives, so reading never stops (two places where
// a residual takes the room; then none waits). Weights are read
// once a block, not once a row, and stay in registers. A row that one block has no room for is
// shared by those of a cluster (sm_90), which exchange once a row. Demands: rows of a multiple of
// 16 bytes at 16-byte boundaries.
#include "tensorcraft/device/persistent_row.cuh"
#include "tensorcraft/ops/rms_norm/row.cuh"

namespace tensorcraft::kernel::rms_norm {

struct Squares {
  float sum;

  TC_DEVICE void append(const Squares& other, int) { sum += other.sum; }
  template <int width = kWarpSize>
  TC_DEVICE Squares over_warp() const {
    return {warp_reduce<width>(sum, Sum())};
  }
};

template <class T, class W, Config C>
TC_DEVICE void persistent(const Params& p) {
  RowPipeline<T, Squares, C, C.has_residual != 0> walk(
      static_shared<RowExchange<Squares, C>>(), dynamic_shared<Packed<T, C.vector>>(), int(p.cols));
  const OwnWeights<W, C, C.has_weight != 0> weights(p.weight, walk);
  float scale = 0;
  walk.run(
      uint32_t(p.rows), p.taken,
      [&](uint32_t index) {
        const Row<T, W, C> row(p, index);
        return RowSource<T>{row.x, row.residual};
      },
      [&](uint32_t, int place) {
        Squares own{0};
#pragma unroll 1
        for (int s = 0; s < C.slots; ++s) {
          if (!walk.has(s)) continue;
          for (int e = 0; e < C.vector; ++e) {
            const float h = walk.at(place, s, e);
            own.sum += h * h;
          }
        }
        return own;
      },
      [&](const Squares& all) { scale = scale_of(p, all.sum); },
      [&](uint32_t index, int place) {
        const Row<T, W, C> row(p, index);
#pragma unroll(C.has_weight ? C.slots : 1)
        for (int s = 0; s < C.slots; ++s) {
          if (!walk.has(s)) continue;
          float h[C.vector], y[C.vector];
          for (int e = 0; e < C.vector; ++e) {
            h[e] = walk.at(place, s, e);
            y[e] = h[e] * scale * weights.at(s, e, 1);
          }
          row.store_results(walk.first + walk.column(s), h, y);
        }
      });
}

}  // namespace tensorcraft::kernel::rms_norm

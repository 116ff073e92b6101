// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: blocks stay and walk over rows. Rows have three places in shared memory: one
// waits to be stored, one is added up, the next arrives, so reading never stops (two places where
// a residual takes the room; then none waits). Weights and biases
// are read once a block, not once a row, and stay in registers. A row that one block has no room
// for is shared by those of a cluster (sm_90). Threads find mean and squares of what they hold and
// join those, one exchange a row. Demands: rows of a multiple of 16 bytes at 16-byte boundaries.
#include "tensorcraft/device/moments.cuh"
#include "tensorcraft/device/persistent_row.cuh"
#include "tensorcraft/ops/layer_norm/row.cuh"

namespace tensorcraft::kernel::layer_norm {

template <class T, class W, Config C>
TC_DEVICE void persistent(const Params& p) {
  RowWalk<T, RowPart<C>, C, C.has_residual != 0> walk(static_shared<RowExchange<RowPart<C>, C>>(),
                                                      dynamic_shared<Packed<T, C.vector>>(),
                                                      int(p.cols));
  const OwnWeights<W, C, C.has_weight != 0> weights(p.weight, walk);
  const OwnWeights<W, C, C.has_bias != 0> biases(p.bias, walk);
  float firsts[2] = {}, pivot = 0;  // of rows that are on their way, for whose values nobody waits
  Statistics s{};
  walk.run(
      uint32_t(p.rows), p.taken,
      [&](uint32_t index) {
        const Row<T, W, C> row(p, index);
        if constexpr (row.kHasPivot) {
          firsts[0] = firsts[1];
          if (index < p.rows) firsts[1] = row.load(0);
        }
        return RowSource<T>{row.x, row.residual};
      },
      [&](uint32_t, int place) {
        pivot = finite_or_zero(firsts[0]);
        Moments own{};
        walk.template each<1>(place, [&](int, int, float(&h)[C.vector]) {
          for (float& v : h) v -= pivot;
          own.join(Moments::of(h));
        });
        return row_part<C>(own);
      },
      [&](const RowPart<C>& all) {
        s = Row<T, W, C>::about(pivot, all.mean);
        s.rstd = rsqrtf(all.variance(p.inverse_cols) + p.eps);
      },
      [&](uint32_t index, int place) {
        const Row<T, W, C> row(p, index);
        walk.template each<C.has_weight || C.has_bias ? C.slots : 1>(
            place, [&](int slot, int column, const float(&h)[C.vector]) {
              float weight[C.vector], bias[C.vector];
              weights.floats(weight, slot, 1);
              biases.floats(bias, slot, 0);
              row.store_weighted(column, h, s, weight, bias);
            });
        if (threadIdx.x == 0 && walk.first == 0) store_statistics(p, index, s);
      });
}

}  // namespace tensorcraft::kernel::layer_norm

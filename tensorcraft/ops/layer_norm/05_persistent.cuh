// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: blocks stay and walk over rows. While a row is worked on in registers, the next
// arrives in shared memory, so reading never stops; weights and biases are read once a block, not
// once a row, and stay in shared memory too. A row that one block has no room for is shared by
// those of a cluster (sm_90). Threads find mean and squares of what they hold and join those, one
// exchange a row. Demands: rows of a multiple of 16 bytes at 16-byte boundaries.
#include "tensorcraft/device/moments.cuh"
#include "tensorcraft/device/persistent_row.cuh"
#include "tensorcraft/ops/layer_norm/row.cuh"

namespace tensorcraft::kernel::layer_norm {

template <class T, class W, Config C>
TC_DEVICE void persistent(const Params& p) {
  const PersistentRow<T, C, C.has_residual != 0> slice(dynamic_shared<OwnColumns<T, C>>(),
                                                       int(p.cols));
  auto* weights = slice.template behind<W>();
  auto* biases = weights + (C.has_weight ? 1 : 0);
  if constexpr (C.has_weight)
    weights->request(static_cast<const W*>(p.weight) + slice.first, slice.cols);
  if constexpr (C.has_bias)
    biases->request(static_cast<const W*>(p.bias) + slice.first, slice.cols);
  float next_first = 0;  // the next row's first value, which nobody waits for here
  const auto request = [&](uint32_t index) {
    if (index >= p.rows) return;
    const Row<T, W, C> row(p, index);
    slice.request({row.x, row.residual});
    if constexpr (row.kHasPivot) next_first = row.load(0);
  };
  // Where no thread has more of a row than another, its count need not be told.
  using Part = Select<C.whole != 0, EvenMoments, Moments>;
  RowWalk<Part, C> walk(static_shared<RowExchange<Part, C>>(), p.taken, p.rows);
  request(walk.row);

  RowSlots<T, C, C.has_residual != 0> held, last;  // `last` waits for its sums and is then stored
  uint32_t last_row = ~0u;
  Statistics s{};
  for (;;) {
    const uint32_t index = walk.row;
    const bool exists = index < p.rows;
    const float pivot = finite_or_zero(next_first);
    if (exists) {
      slice.take(held);
      request(walk.next);
      walk.send(Part(moments(held, pivot)));
    }
    if (last_row != ~0u) {
      const Row<T, W, C> row(p, last_row);
      last.each_slot([&](int slot, int column, const float(&h)[C.vector]) {
        float weight[C.vector], bias[C.vector];
        for (int e = 0; e < C.vector; ++e) weight[e] = 1, bias[e] = 0;
        if constexpr (C.has_weight) weights->floats(weight, slot);
        if constexpr (C.has_bias) biases->floats(bias, slot);
        row.store_weighted(slice.first + column, h, s, weight, bias);
      });
      if (threadIdx.x == 0 && slice.first == 0) store_statistics(p, last_row, s);
    }
    if (!exists) return;
    const Part all = walk.receive();
    s = Row<T, W, C>::about(pivot, all.mean);
    s.rstd = rsqrtf(all.variance(p.inverse_cols) + p.eps);
    last = held;
    last_row = index;
  }
}

}  // namespace tensorcraft::kernel::layer_norm

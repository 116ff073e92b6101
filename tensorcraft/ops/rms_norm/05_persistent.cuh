// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: blocks stay and walk over rows. While a row is worked on in registers, the next
// arrives in shared memory, so reading never stops; weights are read once a block, not once a row,
// and stay in shared memory too. A row that one block has no room for is shared by those of a
// cluster (sm_90), which exchange once a row. Demands: rows of a multiple of 16 bytes at 16-byte
// boundaries.
#include "tensorcraft/device/persistent_row.cuh"
#include "tensorcraft/ops/rms_norm/row.cuh"

namespace tensorcraft::kernel::rms_norm {

struct Squares {
  float sum;

  TC_DEVICE void join(const Squares& other) { sum += other.sum; }
  template <int width = kWarpSize>
  TC_DEVICE Squares over_warp() const {
    return {warp_reduce<width>(sum, Sum())};
  }
};

template <class T, class W, Config C>
TC_DEVICE void persistent(const Params& p) {
  const PersistentRow<T, C, C.has_residual != 0> slice(dynamic_shared<OwnColumns<T, C>>(),
                                                       int(p.cols));
  auto* weights = slice.template behind<W>();
  if constexpr (C.has_weight)
    weights->request(static_cast<const W*>(p.weight) + slice.first, slice.cols);
  const auto request = [&](uint32_t index) {
    const Row<T, W, C> row(p, index);
    if (index < p.rows) slice.request({row.x, row.residual});
  };
  RowWalk<Squares, C> walk(static_shared<RowExchange<Squares, C>>(), p.taken, p.rows);
  request(walk.row);

  RowSlots<T, C, C.has_residual != 0> held, last;  // `last` waits for its sum and is then stored
  uint32_t last_row = ~0u;
  float scale = 0;
  for (;;) {
    const uint32_t index = walk.row;
    const bool exists = index < p.rows;
    if (exists) {
      slice.take(held);
      request(walk.next);
      walk.send({held.own_sum([](float h) { return h * h; })});
    }
    if (last_row != ~0u) {
      const Row<T, W, C> row(p, last_row);
      last.each_slot([&](int slot, int column, const float(&h)[C.vector]) {
        float weight[C.vector];
        for (int e = 0; e < C.vector; ++e) weight[e] = 1;
        if constexpr (C.has_weight) weights->floats(weight, slot);
        row.store_weighted(slice.first + column, h, scale, weight);
      });
    }
    if (!exists) return;
    scale = scale_of(p, walk.receive().sum);
    last = held;
    last_row = index;
  }
}

}  // namespace tensorcraft::kernel::rms_norm

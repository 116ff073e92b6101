// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: blocks stay and walk over rows. While a row is worked on in registers, the next
// arrives in shared memory, so reading never stops. A row that one block has no room for is shared
// by those of a cluster (sm_90). A thread adds exponentials relative to its own maximum, so one
// exchange a row is enough; they are taken again when the row is stored. Demands: rows of a
// multiple of 16 bytes at 16-byte boundaries.
#include "tensorcraft/device/exp_sum.cuh"
#include "tensorcraft/device/persistent_row.cuh"
#include "tensorcraft/ops/softmax/row.cuh"

namespace tensorcraft::kernel::softmax {

template <class T, Config C>
TC_DEVICE void persistent(const Params& p) {
  const PersistentRow<T, C> slice(dynamic_shared<OwnColumns<T, C>>(), int(p.cols));
  const auto source = [&](uint32_t index) {
    return RowSource<T>{index < p.rows ? Logits<T, C>(p, index).data() : nullptr, nullptr};
  };
  RowWalk<ExpSum, C> walk(static_shared<RowExchange<ExpSum, C>>(), p.taken, p.rows);
  slice.request(source(walk.row));

  RowSlots<T, C> held, last;  // `last` waits for its sum and is then stored
  uint32_t last_row = ~0u;
  ExpSum total{};
  for (;;) {
    const uint32_t index = walk.row;
    const bool exists = index < p.rows;
    if (exists) {
      const auto next = source(walk.next);
      if constexpr (sizeof(T) == 2) {
        slice.take(held, next);
      } else {
        slice.take(held);
        slice.request(next);
      }
      const Logits<T, C> x(p, index);
      ExpSum own = ExpSum::of_nothing();
      held.each_slot([&](int, int column, float(&v)[C.vector]) {
        x.transform(v, slice.first + column);
        own.add(v);
      });
      walk.send(own);
    }
    if (last_row != ~0u) {
      const Logits<T, C> x(p, last_row);
      T* out = static_cast<T*>(p.out) + p.maps.offset<C.nested>(Params::kOut, last_row);
      const Finish<C> finish(total);
      last.each_slot([&](int, int column, float(&v)[C.vector]) {
        x.transform(v, slice.first + column);
        for (int e = 0; e < C.vector; ++e)
          v[e] = sizeof(T) == 2 ? finish.of_short(v[e]) : finish(v[e]);
        store_floats(out + slice.first + column, v);
      });
    }
    if (!exists) return;
    total = walk.receive();
    last = held;
    last_row = index;
  }
}

}  // namespace tensorcraft::kernel::softmax

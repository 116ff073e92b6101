// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: blocks stay and walk over rows. Rows have three places in shared memory: one
// waits to be stored, one is added up, the next arrives, so reading never stops. A row that one
// block has no room for is shared by those of a cluster (sm_90). A thread adds exponentials
// relative to its own maximum, so one exchange a row is enough; they are taken again when the row
// is stored. Demands: rows of a multiple of 16 bytes at 16-byte boundaries.
#include "tensorcraft/device/exp_sum.cuh"
#include "tensorcraft/device/persistent_row.cuh"
#include "tensorcraft/ops/softmax/row.cuh"

namespace tensorcraft::kernel::softmax {

struct Persistent {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    RowPipeline<T, ExpSum, C> walk(static_shared<RowExchange<ExpSum, C>>(),
                                   dynamic_shared<Packed<T, C.vector>>(), int(p.cols));
    Finish<C> finish;
    walk.run(
        uint32_t(p.rows), p.taken,
        [&](uint32_t row) { return RowSource<T>{Logits<T, C>(p, row).data(), nullptr}; },
        [&](uint32_t row, int place) {
          const Logits<T, C> x(p, row);
          ExpSum own = ExpSum::of_nothing();
#pragma unroll 1
          for (int s = 0; s < C.slots; ++s) {
            if (!walk.has(s)) continue;
            float v[C.vector];
            walk.floats(place, s, v);
            x.transform(v, walk.first + walk.column(s));
            own.add(v);
          }
          return own;
        },
        [&](const ExpSum& total) { finish = Finish<C>(total); },
        [&](uint32_t row, int place) {
          const Logits<T, C> x(p, row);
          T* out = static_cast<T*>(p.out) + row_offset(p, Params::kOut, row);
#pragma unroll 1
          for (int s = 0; s < C.slots; ++s) {
            if (!walk.has(s)) continue;
            float v[C.vector];
            walk.floats(place, s, v);
            x.transform(v, walk.first + walk.column(s));
            for (int e = 0; e < C.vector; ++e)
              v[e] = sizeof(T) == 2 ? finish.of_short(v[e]) : finish(v[e]);
            store_floats(out + walk.first + walk.column(s), v);
          }
        });
  }
};

}  // namespace tensorcraft::kernel::softmax

// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one row: k times the largest of those below the last. Reads the row k times.
#include "tensorcraft/ops/topk/key.cuh"

namespace tensorcraft::kernel::topk {

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t row = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (row >= p.rows) return;
    const Row<T, C> r(p, row);
    uint64_t last = ~uint64_t(0);
    for (int64_t place = 0; place < p.k; ++place) {
      uint64_t best = 0;
      for (int64_t i = 0; i < p.cols; ++i) {
        const uint64_t key = r.key(i);
        if (key < last && key > best) best = key;
      }
      r.store(place, best);
      last = best;
    }
  }
};

}  // namespace tensorcraft::kernel::topk

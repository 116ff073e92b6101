// SPDX-License-Identifier: Apache-2.0
#pragma once
// The second launch of split: a warp a row.
#include "tensorcraft/ops/sample/row.cuh"

namespace tensorcraft::kernel::sample {

struct Pick {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    const int64_t row = int64_t(blockIdx.x) * (C.threads / kWarpSize) + threadIdx.x / kWarpSize;
    if (row >= p.rows) return;  // the whole warp
    const Row<T, RowParams<Params, C>> r(p, row);
    const Part* const parts = static_cast<const Part*>(p.workspace) + row * r.chunks();
    uint32_t largest = 0;
    for (int64_t c = threadIdx.x % kWarpSize; c < r.chunks(); c += kWarpSize)
      largest = Larger()(largest, parts[c].order);
    largest = warp_reduce(largest, Larger());
    const Kept kept = Kept::all_of(r, value_of(largest));
    store_pick<C>(r, kept, largest, [&](int64_t c) { return parts[c]; });
  }
};

}  // namespace tensorcraft::kernel::sample

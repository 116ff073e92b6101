// SPDX-License-Identifier: Apache-2.0
#pragma once
// The second launch of split: a warp a row, or if there are filters a block.
#include "tensorcraft/ops/sample/filter.cuh"

namespace tensorcraft::kernel::sample {

struct Pick {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    const Row<T, RowParams<Params, C>> r(p, blockIdx.x);
    const Part* const parts = static_cast<const Part*>(p.workspace) + r.row * r.chunks();
    uint32_t largest = 0;
    for (int64_t c = threadIdx.x; c < r.chunks(); c += C.threads)
      largest = Larger()(largest, parts[c].order);
    if constexpr (C.filters == 0) {
      static_assert(C.threads == kWarpSize);
      largest = warp_reduce(largest, Larger());
      const Kept kept = Kept::all_of(r, value_of(largest));
      store_pick<C>(r, kept, largest, [&](int64_t c) { return parts[c]; });
    } else {
      auto& shared = static_shared<FilterShared>();
      for (int64_t c = threadIdx.x; c < r.chunks(); c += C.threads) shared.parts[c] = parts[c];
      largest = block_reduce(shared.largest, largest, LargestOf());
      filter_and_pick<C>(r, shared, largest);
    }
  }
};

}  // namespace tensorcraft::kernel::sample

// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a block has the row, a warp each chunk, whose elements stay in registers while the
// warp finds the largest and sums. So a row without filters is read once. A filter finds 11 bits of
// the lowest key at a time, and reads only chunks whose largest could stay: (chunks that matter) *
// 3 to 5 reads instead of (all) * 59. Demands at most 2^20 elements a row.
#include "tensorcraft/ops/sample/filter.cuh"

namespace tensorcraft::kernel::sample {

struct Block {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    using Shared = Select<C.filters != 0, FilterShared, RowShared>;
    auto& shared = static_shared<Shared>();
    const Row<T, RowParams<Params, C>> r(p, blockIdx.x);
    uint32_t largest = 0;
    for (int64_t c = threadIdx.x / kWarpSize; c < r.chunks(); c += C.threads / kWarpSize) {
      const Part part = Chunk<T, C>(r, c).part(r);
      if (threadIdx.x % kWarpSize == 0) shared.parts[c] = part;
      largest = Larger()(largest, part.order);
    }
    largest = block_reduce(shared.largest, largest, LargestOf());
    filter_and_pick<C>(r, shared, largest);
  }
};

}  // namespace tensorcraft::kernel::sample

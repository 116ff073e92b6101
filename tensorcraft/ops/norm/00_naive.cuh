// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one row: walks over it for the mean and the variance about that mean, or for the
// squares alone, and one for the results. Neighbouring threads read addresses a whole row apart, so
// each warp instruction fetches 32 cache lines for 32 elements.
#include "tensorcraft/ops/norm/row.cuh"

namespace tensorcraft::kernel::norm {

struct Naive {
  template <class T, class W, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    const int64_t index = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (index >= p.rows) return;
    const Row<T, W, C> row(p, index);
    const auto s = statistics_of<T, C>(row, 0, static_shared<BlockReduce<float>>());
    for (int64_t i = 0; i < p.cols; ++i) row.store(i, row.load(i), s);
    store_statistics(p, index, s);
  }
};

}  // namespace tensorcraft::kernel::norm

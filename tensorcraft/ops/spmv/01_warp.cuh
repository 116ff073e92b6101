// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a warp has a row, and its lanes read neighbouring elements:
//   sectors of memory for 32 elements of 4 bytes = 4, not 32.
// Rows of fewer than 32 elements leave lanes idle.
#include "tensorcraft/ops/spmv/element.cuh"

namespace tensorcraft::kernel::spmv {

struct Warp {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    const int lane = int(threadIdx.x) % kWarpSize;
    const int64_t row = int64_t(blockIdx.x) * (C.threads / kWarpSize) + threadIdx.x / kWarpSize;
    if (row >= p.a.rows) return;
    const SemiringOf<ParamsOf<C>, C.semiring> semiring(p);
    const auto end = row_begin<I>(p.a, row + 1);
    LongTotal own(semiring);
    for (auto k = row_begin<I>(p.a, row) + lane; k < end; k += kWarpSize)
      add_element<T, I>(p, k, own);
    const float total = reduce_lanes<kWarpSize>(semiring, own.value());
    if (lane == 0) store<T>(p, row, total);
  }
};

}  // namespace tensorcraft::kernel::spmv

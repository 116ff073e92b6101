// SPDX-License-Identifier: Apache-2.0
#pragma once
// A warp a row of a dense matrix: how many of its elements are not +0.
#include "tensorcraft/device/bits.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/csr/params.h"

namespace tensorcraft::kernel::csr {

struct CountRows {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int lane = int(threadIdx.x) % kWarpSize;
    const int64_t row = int64_t(blockIdx.x) * (C.threads / kWarpSize) + threadIdx.x / kWarpSize;
    if (row >= p.a.rows) return;
    const T* const x = static_cast<const T*>(p.dense) + row * p.dense_strides[0];
    int count = 0;
#pragma unroll 8
    for (int64_t i = lane; i < p.a.cols; i += kWarpSize) count += x[i * p.dense_strides[1]] != 0;
    count = warp_sum(count);
    if (lane == 0) counters(p)[row] = uint32_t(count);
  }
};

}  // namespace tensorcraft::kernel::csr

// SPDX-License-Identifier: Apache-2.0
#pragma once
// A warp a row: zeros, then the stored elements.
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/csr/params.h"

namespace tensorcraft::kernel::csr {

struct ToDense {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int lane = int(threadIdx.x) % kWarpSize;
    const int64_t row = int64_t(blockIdx.x) * (C.threads / kWarpSize) + threadIdx.x / kWarpSize;
    if (row >= p.a.rows) return;
    T* const out = static_cast<T*>(p.dense) + row * p.dense_strides[0];
    for (int64_t i = lane; i < p.a.cols; i += kWarpSize) out[i * p.dense_strides[1]] = T(0);
    __syncwarp();
    const auto end = row_begin<I>(p.a, row + 1);
    for (auto k = row_begin<I>(p.a, row) + lane; k < end; k += kWarpSize) {
      const I column = static_cast<const I*>(p.a.indices)[k * p.a.indices_stride];
      if (is_column(p.a, column))
        out[column * p.dense_strides[1]] = static_cast<const T*>(p.a.data)[k * p.a.data_stride];
    }
  }
};

}  // namespace tensorcraft::kernel::csr

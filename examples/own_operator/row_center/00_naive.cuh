// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one row: it reads the row twice, and neighbours in a warp read a row apart.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/ops/row_center/params.h"

namespace tensorcraft::kernel::row_center {

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t row = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (row >= p.rows) return;
    const T* x = static_cast<const T*>(p.x) + p.x_map.offset(row);
    T* out = static_cast<T*>(p.out) + p.out_map.offset(row);
    float sum = 0;
    for (int64_t i = 0; i < p.cols; ++i) sum += float(x[i * p.x_step]);
    const float mean = sum / float(p.cols);
    for (int64_t i = 0; i < p.cols; ++i) out[i * p.out_step] = T(float(x[i * p.x_step]) - mean);
  }
};

}  // namespace tensorcraft::kernel::row_center

// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one row: two walks over it. Neighbouring threads read addresses a whole row apart, so
// each warp instruction fetches 32 cache lines for 32 elements.
#include "tensorcraft/device/compensated_sum.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/scaled_row.cuh"
#include "tensorcraft/ops/l2_normalize/params.h"

namespace tensorcraft::kernel::l2_normalize {

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    const int64_t row = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (row >= p.rows) return;
    const T* x = static_cast<const T*>(p.x) + row_offset(p, Params::kX, row);
    T* out = static_cast<T*>(p.out) + row_offset(p, Params::kOut, row);
    CompensatedSum sum;
    for (int64_t i = 0; i < p.cols; ++i) sum.add(float(x[i * p.x_step]) * float(x[i * p.x_step]));
    const float length = fmax_nan(sqrtf(sum.value()), p.eps);
    if (store_extreme_unit<T, C, false>(p, 1.0f / length, x, out)) return;
    for (int64_t i = 0; i < p.cols; ++i) out[i * p.out_step] = T(float(x[i * p.x_step]) / length);
  }
};

}  // namespace tensorcraft::kernel::l2_normalize

// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one row: three walks over it, for the maximum, the sum and the results. Subtracting
// the maximum keeps every exponential at most 1. The sum is compensated: a float that has grown to
// 2^16 times the next term would lose 16 of its 24 bits.
#include "tensorcraft/device/compensated_sum.cuh"
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/softmax/row.cuh"

namespace tensorcraft::kernel::softmax {

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    const int64_t row = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (row >= p.rows) return;
    const Logits<T, C> x(p, row);
    T* out = static_cast<T*>(p.out) + row_offset(p, Params::kOut, row);
    float top = kLowest;
    for (int64_t i = 0; i < p.cols; ++i) top = fmax_nan(top, x.strided(i));
    CompensatedSum terms;
    for (int64_t i = 0; i < p.cols; ++i) terms.add(expf(x.strided(i) - top));
    const ExpSum total{top, terms.value()};
    if constexpr (C.form == Form::logsumexp) {
      *out = T(total.log_sum());
    } else {
      const Finish<C> finish(total);
      for (int64_t i = 0; i < p.cols; ++i) out[i * p.out_step] = T(finish(x.strided(i)));
    }
  }
};

}  // namespace tensorcraft::kernel::softmax

// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one output: a walk over the sequence. Neighbouring threads read neighbouring columns,
// but batch * cols threads alone rarely fill a GPU.
#include "tensorcraft/device/compensated_sum.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/ops/masked_mean/params.h"

namespace tensorcraft::kernel::masked_mean {

struct Naive {
  template <class T, class Length, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    const int64_t b = i / p.cols, col = i % p.cols;
    if (b >= p.batch) return;
    const T* x = static_cast<const T*>(p.x) + b * p.x_strides[0] + col * p.x_strides[2];
    const int64_t n = valid_steps<Length>(p, b);
    CompensatedSum sum;
    for (int64_t s = 0; s < n; ++s) sum.add(float(x[s * p.x_strides[1]]));
    static_cast<T*>(p.out)[b * p.out_strides[0] + col * p.out_strides[1]] =
        T(n > 0 ? sum.value() / float(n) : 0.0f);
  }
};

}  // namespace tensorcraft::kernel::masked_mean

// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one row; any strides. Neighbouring threads read places that are a row apart, so most
// of what memory delivers is thrown away.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/ops/merge_attention/params.h"
#include "tensorcraft/ops/merge_attention/shares.cuh"

namespace tensorcraft::kernel::merge_attention {

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    const int64_t row = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (row >= p.rows) return;
    const Shares s = shares_of(p.lse_a[row_offset(p, Params::kLseA, row)],
                               p.lse_b[row_offset(p, Params::kLseB, row)]);
    const T* a = static_cast<const T*>(p.out_a) + row_offset(p, Params::kOutA, row);
    const T* b = static_cast<const T*>(p.out_b) + row_offset(p, Params::kOutB, row);
    T* out = static_cast<T*>(p.out) + row_offset(p, Params::kOut, row);
    for (int64_t col = 0; col < p.cols; ++col)
      out[col * p.out_step] = T(s.merged(float(a[col * p.a_step]), float(b[col * p.b_step])));
    if (p.lse) p.lse[row_offset(p, Params::kLse, row)] = s.lse;
  }
};

}  // namespace tensorcraft::kernel::merge_attention

// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one element of out, after the ids are sorted; any strides.
#include "tensorcraft/ops/moe_permute/params.h"

namespace tensorcraft::kernel::moe_permute {

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    const int64_t row = i / p.hidden, col = i - row * p.hidden;
    if (row >= p.sort.rows) return;
    const int32_t source = source_of(p.sort, int32_t(row));
    T value = T(0);
    if (source >= 0) {
      const int32_t token = source / p.sort.k;
      value = static_cast<const T*>(p.x)[token * p.x_strides[0] + col * p.x_strides[1]];
    }
    static_cast<T*>(p.out)[row * p.out_strides[0] + col * p.out_strides[1]] = value;
  }
};

}  // namespace tensorcraft::kernel::moe_permute

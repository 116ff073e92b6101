// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one element of out; any strides. A slot waits for its row, then for the element.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/ops/moe_combine/params.h"

namespace tensorcraft::kernel::moe_combine {

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    const int64_t token = i / p.hidden, col = i - token * p.hidden;
    if (token >= p.tokens) return;
    const T* const y = static_cast<const T*>(p.y) + col * p.y_strides[1];
    float sum = 0;
    for (int64_t s = 0; s < p.k; ++s) {
      const Slot slot = slot_of(p, token, s);
      if (slot.row >= 0) sum = fmaf(slot.weight, float(y[slot.row * p.y_strides[0]]), sum);
    }
    static_cast<T*>(p.out)[token * p.out_strides[0] + col * p.out_strides[1]] = T(sum);
  }
};

}  // namespace tensorcraft::kernel::moe_combine

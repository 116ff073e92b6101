// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one element of the output; any strides. It asks where the element lies and writes
// what x has there, or the value: no byte is written twice, as after a fill and a copy.
#include "tensorcraft/ops/pad/params.h"

namespace tensorcraft::kernel::pad {

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (i >= p.count) return;
    const Place at = p.axes.place(Index<C>(i), p.axes.count);
    T element = T(p.value);
    if (at.is_inside) element = static_cast<const T*>(p.x)[at.x];
    static_cast<T*>(p.out)[at.out] = element;
  }
};

}  // namespace tensorcraft::kernel::pad

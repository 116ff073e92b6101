// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one element; any strides. A thread waits for its index, then for the element.
#include "tensorcraft/ops/gather/params.h"

namespace tensorcraft::kernel::gather {

struct Naive {
  template <class Id, class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (i >= p.count) return;
    const Offsets at = p.axes.offsets(Index<C>(i));
    const int64_t row = position(static_cast<const Id*>(p.indices)[at.index], p.axis_size);
    T value = T(p.missing);
    if (row >= 0) value = static_cast<const T*>(p.x)[at.x + row * p.x_step];
    static_cast<T*>(p.out)[at.out] = value;
  }
};

}  // namespace tensorcraft::kernel::gather

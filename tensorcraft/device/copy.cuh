// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/copy.h"

namespace tensorcraft::kernel {

// A step in front of a rung that changes some elements of a tensor, if the result has memory of its
// own: one thread an element, which is moved as bits.
struct Copy {
  template <class T, CopyConfig C>
  TC_DEVICE static void run(const CopyParams& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (i >= p.count) return;
    static_cast<T*>(p.to)[p.to_map.offset(i)] = static_cast<const T*>(p.from)[p.from_map.offset(i)];
  }
};

}  // namespace tensorcraft::kernel

// SPDX-License-Identifier: Apache-2.0
#pragma once
// The step in front of a rung if the tokens do not go into the cache itself: one thread an element,
// which is moved as bits.
#include "tensorcraft/ops/append_kv/params.h"

namespace tensorcraft::kernel::append_kv {

struct Copy {
  template <class T, CopyConfig C>
  TC_DEVICE static void run(const CopyParams& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (i >= p.count) return;
    static_cast<T*>(p.to)[p.to_map.offset(i)] = static_cast<const T*>(p.from)[p.from_map.offset(i)];
  }
};

}  // namespace tensorcraft::kernel::append_kv

// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one element; any strides. Neighbouring threads write neighbours if the output has
// any, and read `in_stride` elements apart: of each 32 bytes that such a read moves one element is
// used.
#include "tensorcraft/ops/permute/params.h"

namespace tensorcraft::kernel::permute {

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (i >= p.count) return;
    const Offsets at = p.axes.offsets(Index<C>(i));
    static_cast<T*>(p.out)[at.out] = static_cast<const T*>(p.in)[at.in];
  }
};

}  // namespace tensorcraft::kernel::permute

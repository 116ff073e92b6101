// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/csr/params.h"

namespace tensorcraft::kernel::csr {

// Clears the places behind the `kept` elements that lie inside the matrix; by some blocks.
template <class T, class I, Config C>
TC_DEVICE void clear_left_out(const Params& p, int64_t kept, int64_t block, int64_t blocks) {
  for (int64_t k = kept + block * C.threads + threadIdx.x; k < p.a.stored;
       k += blocks * C.threads) {
    element_of<T>(p.data, k) = T(0);
    element_of<I>(p.indices, k) = I(0);
  }
}

}  // namespace tensorcraft::kernel::csr

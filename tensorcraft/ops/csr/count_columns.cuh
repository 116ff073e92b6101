// SPDX-License-Identifier: Apache-2.0
#pragma once
// A thread a stored element, which counts for its column if it is of a row.
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/ops/csr/params.h"

namespace tensorcraft::kernel::csr {

struct CountColumns {
  template <class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t k = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (k < int64_t(row_begin<I>(p.a, 0)) || k >= int64_t(row_begin<I>(p.a, p.a.rows))) return;
    const I column = static_cast<const I*>(p.a.indices)[k * p.a.indices_stride];
    if (is_column(p.a, column)) atomic_add(&counters(p)[column], 1u);
  }
};

}  // namespace tensorcraft::kernel::csr

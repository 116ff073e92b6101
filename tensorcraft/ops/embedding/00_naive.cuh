// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one element; any strides. Each thread reads the id again, from the cache, and moves
// sizeof(T) bytes.
#include "tensorcraft/ops/embedding/params.h"

namespace tensorcraft::kernel::embedding {

struct Naive {
  template <class Id, class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    const int64_t row = i / p.cols, col = i % p.cols;
    if (row >= p.count) return;
    const int64_t id = static_cast<const Id*>(p.ids)[row_offset(p, Params::kIds, row)];
    T value = T(p.nan);
    if (id >= 0 && id < p.rows)
      value = static_cast<const T*>(p.table)[id * p.table_row + col * p.table_step];
    static_cast<T*>(p.out)[row_offset(p, Params::kOut, row) + col * p.out_step] = value;
  }
};

}  // namespace tensorcraft::kernel::embedding

// SPDX-License-Identifier: Apache-2.0
#pragma once
// A warp a row, whose elements go to their columns, in any order; sort_columns.cuh puts each column
// in order.
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/csr/params.h"

namespace tensorcraft::kernel::csr {

struct Spread {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int lane = int(threadIdx.x) % kWarpSize;
    const int64_t row = int64_t(blockIdx.x) * (C.threads / kWarpSize) + threadIdx.x / kWarpSize;
    if (row >= p.a.rows) return;
    const auto end = row_begin<I>(p.a, row + 1);
    for (auto k = row_begin<I>(p.a, row) + lane; k < end; k += kWarpSize) {
      const I column = static_cast<const I*>(p.a.indices)[k * p.a.indices_stride];
      if (!is_column(p.a, column)) continue;
      const uint32_t rank = atomic_add(&counters(p)[p.a.cols + column], 1u);
      const int64_t at = int64_t(element_of<I>(p.indptr, column)) + rank;
      if (at >= p.a.stored) continue;
      element_of<T>(p.data, at) = static_cast<const T*>(p.a.data)[k * p.a.data_stride];
      element_of<I>(p.indices, at) = I(row);
    }
  }
};

}  // namespace tensorcraft::kernel::csr

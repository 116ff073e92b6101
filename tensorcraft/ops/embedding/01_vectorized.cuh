// SPDX-License-Identifier: Apache-2.0
#pragma once
// C.group threads, one row: each moves 16 bytes at a time, so for the same bytes there are
// 16 / sizeof(T) times fewer memory instructions, ids are read once a thread, and nothing is
// divided to find row and column. Demands contiguous rows of whole 16-byte units on both sides.
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/embedding/params.h"

namespace tensorcraft::kernel::embedding {

struct Vectorized {
  template <class Id, class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    constexpr int N = kVectorSize<T>;
    const int64_t row = int64_t(blockIdx.x) * (C.threads / C.group) + threadIdx.x / C.group;
    if (row >= p.count) return;
    const int64_t id = static_cast<const Id*>(p.ids)[row_offset(p, Params::kIds, row)];
    const bool exists = id >= 0 && id < p.rows;
    const T* from = static_cast<const T*>(p.table) + (exists ? id * p.table_row : 0);
    T* to = static_cast<T*>(p.out) + row_offset(p, Params::kOut, row);
    for (int64_t col = threadIdx.x % C.group * N; col < p.cols; col += C.group * N) {
      AlignedVector<T, N> values;
      for (int k = 0; k < N; ++k) values[k] = T(p.nan);
      if (exists) values = load_vector<N>(from + col);
      store_vector(to + col, values);
    }
  }
};

}  // namespace tensorcraft::kernel::embedding

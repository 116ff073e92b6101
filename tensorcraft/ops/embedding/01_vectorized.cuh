// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, 16 bytes of a row: 16 / sizeof(T) times fewer reads of ids, divisions and memory
// instructions for the same bytes. Demands contiguous rows of whole 16-byte units on both sides.
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/embedding/params.h"

namespace tensorcraft::kernel::embedding {

template <class Id, class T, Config C>
TC_DEVICE void vectorized(const Params& p) {
  constexpr int N = kVectorSize<T>;
  const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
  const int64_t row = i / (p.cols / N), col = i % (p.cols / N) * N;
  if (row >= p.count) return;
  const int64_t id = static_cast<const Id*>(p.ids)[p.ids_map.offset(row)];
  AlignedVector<T, N> values;
  for (int k = 0; k < N; ++k) values[k] = T(p.nan);
  if (id >= 0 && id < p.rows)
    values = load_vector<N>(static_cast<const T*>(p.table) + id * p.table_row + col);
  store_vector(static_cast<T*>(p.out) + p.out_rows.offset(row) + col, values);
}

}  // namespace tensorcraft::kernel::embedding

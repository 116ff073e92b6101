// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one row: three walks over it, for the mean, the variance about that mean, and the
// results. Neighbouring threads read addresses a whole row apart, so each warp instruction fetches
// 32 cache lines for 32 elements.
#include "tensorcraft/ops/layer_norm/row.cuh"

namespace tensorcraft::kernel::layer_norm {

template <class T, class W, Config C>
TC_DEVICE void naive(const Params& p) {
  const int64_t index = int64_t(blockIdx.x) * C.threads + threadIdx.x;
  if (index >= p.rows) return;
  const Row<T, W, C> row(p, index);
  Statistics s{row.pivot(), 0, 0};
  float sum = 0, squares = 0, rest = 0;
  for (int64_t i = 0; i < p.cols; ++i) sum += row.load(i) - s.pivot;
  s.shift = sum * p.inverse_cols;
  for (int64_t i = 0; i < p.cols; ++i) {
    const float d = s.centered(row.load(i));
    squares += d * d;
    rest += d;
  }
  s.shift += rest * p.inverse_cols;  // what one long sum rounded away
  s.rstd = rsqrtf(squares * p.inverse_cols + p.eps);
  for (int64_t i = 0; i < p.cols; ++i) row.store(i, row.load(i), s);
  store_statistics(p, index, s);
}

}  // namespace tensorcraft::kernel::layer_norm

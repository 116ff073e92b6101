// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one row: two walks over it, for the squares and for the results. Neighbouring threads
// read addresses a whole row apart, so each warp instruction fetches 32 cache lines for 32
// elements.
#include "tensorcraft/ops/rms_norm/row.cuh"

namespace tensorcraft::kernel::rms_norm {

template <class T, class W, Config C>
TC_DEVICE void naive(const Params& p) {
  const int64_t index = int64_t(blockIdx.x) * C.threads + threadIdx.x;
  if (index >= p.rows) return;
  const Row<T, W, C> row(p, index);
  float squares = 0;
  for (int64_t i = 0; i < p.cols; ++i) {
    const float h = row.load(i);
    squares += h * h;
  }
  const float scale = row.scale(squares);
  for (int64_t i = 0; i < p.cols; ++i) row.store(i, row.load(i), scale);
}

}  // namespace tensorcraft::kernel::rms_norm

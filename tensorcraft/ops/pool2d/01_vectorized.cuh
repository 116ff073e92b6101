// SPDX-License-Identifier: Apache-2.0
#pragma once
// A thread has 16 bytes of channels of one place, so a tap is one access and an index is divided
// once for all of them. Neighbouring threads have neighbouring channels, then columns, so a line of
// the image that several windows share comes from the cache.
// It demands channels side by side in x and the result, in whole units of 16 bytes.
#include "tensorcraft/ops/pool2d/pool.cuh"

namespace tensorcraft::kernel::pool2d {

struct Vectorized {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t units = p.channels / C.vector;
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (i >= p.batch * p.rows.out * p.columns.out * units) return;
    const int64_t place = i / units, line = place / p.columns.out;
    pool_window<T, C>(p, line / p.rows.out, line % p.rows.out, place % p.columns.out,
                      i % units * C.vector);
  }
};

}  // namespace tensorcraft::kernel::pool2d

// SPDX-License-Identifier: Apache-2.0
#pragma once
// The elements of one index are moved in units of up to 16 bytes, and a thread has C.vectors
// indices, then C.vectors units in flight: two waits for all of them, not for each. Runs are whole
// units; if an index brings single elements, a unit is one.
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/gather/params.h"

namespace tensorcraft::kernel::gather {

struct Vectorized {
  template <class Id, class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    using Unit = AlignedVector<T, C.vector>;
    const int64_t first = int64_t(blockIdx.x) * C.threads * C.vectors + threadIdx.x;
    Offsets at[C.vectors];
    int64_t row[C.vectors];
    Unit units[C.vectors];
#pragma unroll
    for (int v = 0; v < C.vectors; ++v) {
      const int64_t i = first + v * C.threads;
      if (i >= p.count) continue;
      at[v] = p.axes.offsets(Index<C>(i));
      row[v] = position(static_cast<const Id*>(p.indices)[at[v].index], p.axis_size);
    }
#pragma unroll
    for (int v = 0; v < C.vectors; ++v) {
      if (first + v * C.threads >= p.count) continue;
      for (int k = 0; k < C.vector; ++k) units[v][k] = T(p.missing);
      if (row[v] >= 0) units[v] = static_cast<const Unit*>(p.x)[at[v].x + row[v] * p.x_step];
    }
#pragma unroll
    for (int v = 0; v < C.vectors; ++v)
      if (first + v * C.threads < p.count) static_cast<Unit*>(p.out)[at[v].out] = units[v];
  }
};

}  // namespace tensorcraft::kernel::gather

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Neighbours that stay neighbours move together, up to 16 bytes at once, and a thread starts
// C.vectors loads before it needs the first: an SM has threads * vectors * 16 bytes a block in
// flight. A row is whole units; a tensor that is one run of memory may end in `tail` bytes.
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/permute/params.h"

namespace tensorcraft::kernel::permute {

struct Vectorized {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    using Unit = AlignedVector<T, C.vector_in>;
    const Unit* in = static_cast<const Unit*>(p.in);
    Unit* out = static_cast<Unit*>(p.out);
    const int64_t first = int64_t(blockIdx.x) * C.threads * C.vectors + threadIdx.x;
    Unit units[C.vectors];
    int64_t to[C.vectors];
#pragma unroll
    for (int v = 0; v < C.vectors; ++v) {
      const int64_t i = first + v * C.threads;
      if (i >= p.count) continue;
      const Offsets at = p.axes.offsets(Index<C>(i));
      units[v] = in[at.in];
      to[v] = at.out;
    }
#pragma unroll
    for (int v = 0; v < C.vectors; ++v)
      if (first + v * C.threads < p.count) out[to[v]] = units[v];

    if (p.tail == 0 || blockIdx.x + 1 < gridDim.x || int64_t(threadIdx.x) >= p.tail) return;
    const int64_t last = p.count * int64_t(sizeof(Unit)) + threadIdx.x;
    static_cast<uint8_t*>(p.out)[last] = static_cast<const uint8_t*>(p.in)[last];
  }
};

}  // namespace tensorcraft::kernel::permute

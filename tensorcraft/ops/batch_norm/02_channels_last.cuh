// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: for tensors whose channels are neighbours, the stride of a grid over accesses is
// made a multiple of a row's accesses, so that a thread meets the same channels every time: it
// folds their parameters once into registers, and the loop is loads, a multiplication and an
// addition an element, stores. Demands: dense rows of channels, of whole 16-byte accesses.
#include "tensorcraft/ops/batch_norm/channel.cuh"

namespace tensorcraft::kernel::batch_norm {

struct ChannelsLast {
  template <class T, class W, Config C>
  TC_DEVICE static void run(const Params& p) {
    const T* x = static_cast<const T*>(p.x);
    T* out = static_cast<T*>(p.out);
    const int64_t row = p.channels / C.vector;  // accesses
    const int64_t count = p.batch * p.spatial * row;
    const int64_t step = int64_t(gridDim.x) * C.threads;
    const int64_t first = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    Folded f[C.vector];
    for (int e = 0; e < C.vector; ++e) f[e] = fold<W>(p, first % row * C.vector + e);
    for (int64_t i = first; i < count; i += step * C.slots) {
      AlignedVector<T, C.vector> v[C.slots];
#pragma unroll
      for (int s = 0; s < C.slots; ++s)
        if (i + s * step < count) v[s] = load_vector<C.vector>(x + (i + s * step) * C.vector);
#pragma unroll
      for (int s = 0; s < C.slots; ++s) {
        if (i + s * step >= count) continue;
        float y[C.vector];
        for (int e = 0; e < C.vector; ++e)
          y[e] = activate<C.activation>(float(v[s][e]) * f[e].scale + f[e].shift);
        store_floats(out + (i + s * step) * C.vector, y);
      }
    }
  }
};

}  // namespace tensorcraft::kernel::batch_norm

// SPDX-License-Identifier: Apache-2.0
#pragma once
// The first launch of two_launches: each block finds the range of its part of a contiguous tensor,
// reading it once in 16-byte accesses, C.slots of them in flight. Largest values do not depend on
// the order in which they are found, so the result is the same every time. Q is what the second
// launch makes of them.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/quantize/scale.cuh"

namespace tensorcraft::kernel::quantize {

struct Amax {
  template <class T, class Q, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    auto& scratch = static_shared<BlockReduce<float>>();
    constexpr int64_t kStep = int64_t(C.threads) * C.vector * C.slots;
    const T* x = static_cast<const T*>(p.x);
    const int64_t size = p.tiles.rows * p.tiles.cols;
    PackedRange<T, C.vector> found;
    for (int64_t first = blockIdx.x * kStep; first < size; first += gridDim.x * kStep) {
      Packed<T, C.vector> values[C.slots];
#pragma unroll
      for (int s = 0; s < C.slots; ++s) {
        const int64_t at = first + (int64_t(s) * C.threads + threadIdx.x) * C.vector;
        values[s] = {};
        if (at < size) values[s] = Packed<T, C.vector>::load(x + at);
      }
#pragma unroll
      for (int s = 0; s < C.slots; ++s) found.widen(values[s], C.asymmetric != 0);
    }
    Range range = found.result();
    range.high = block_max(scratch, range.high);
    if constexpr (C.asymmetric) range.low = block_max(scratch, range.low);
    if (threadIdx.x > 0) return;
    p.partials[2 * blockIdx.x] = range.high;
    p.partials[2 * blockIdx.x + 1] = range.low;
  }
};

}  // namespace tensorcraft::kernel::quantize

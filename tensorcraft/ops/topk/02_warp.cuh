// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a short row lies in the registers of one warp, as C.slots keys in each lane, and
// the largest is found k times by shuffles: no barrier, no sorting of what is not wanted. As good
// for the experts of a router, where rows are short, many, and k is small.
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/topk/key.cuh"

namespace tensorcraft::kernel::topk {

struct LargerKey {
  TC_DEVICE uint64_t operator()(uint64_t a, uint64_t b) const { return a > b ? a : b; }
};

struct Warp {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int lane = int(threadIdx.x) % kWarpSize;
    const int64_t row = int64_t(blockIdx.x) * (C.threads / kWarpSize) + threadIdx.x / kWarpSize;
    if (row >= p.rows) return;  // the whole warp
    const Row<T, C> r(p, row);
    uint64_t keys[C.slots];
#pragma unroll
    for (int s = 0; s < C.slots; ++s) {
      const int64_t at = s * kWarpSize + lane;
      keys[s] = at < p.cols ? r.key(at) : 0;
    }
    for (int64_t place = 0; place < p.k; ++place) {
      uint64_t best = keys[0];
#pragma unroll
      for (int s = 1; s < C.slots; ++s) best = LargerKey()(best, keys[s]);
      best = warp_reduce(best, LargerKey());
#pragma unroll
      for (int s = 0; s < C.slots; ++s)
        if (keys[s] == best) keys[s] = 0;
      if (lane == 0) r.store(place, best);
    }
  }
};

}  // namespace tensorcraft::kernel::topk

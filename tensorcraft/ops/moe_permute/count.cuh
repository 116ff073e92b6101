// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many ids of each expert each chunk has: what 01_chunks.cuh needs to know of other blocks.
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/moe_permute/params.h"

namespace tensorcraft::kernel::moe_permute {

struct Counts {
  int32_t of[kMaxExperts];
};

struct Count {
  template <Config C>
  TC_DEVICE static void run(const SortParams& p) {
    auto& counts = static_shared<Counts>();
    const int thread = int(threadIdx.x), begin = int(blockIdx.x) * p.chunk;
    const int end = p.entries - begin < p.chunk ? p.entries : begin + p.chunk;
    for (int e = thread; e < p.experts; e += C.threads) counts.of[e] = 0;
    __syncthreads();
    for (int i = begin + thread; i < end; i += C.threads)
      if (const int expert = expert_of(p, i); expert >= 0) atomic_add(&counts.of[expert], 1);
    __syncthreads();
    int32_t* const own = p.workspace + int64_t(blockIdx.x) * p.experts;
    for (int e = thread; e < p.experts; e += C.threads) own[e] = counts.of[e];
  }
};

}  // namespace tensorcraft::kernel::moe_permute

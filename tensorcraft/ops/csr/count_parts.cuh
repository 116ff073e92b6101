// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block a part of a bucket: how many of its elements each column has. Where a bucket is one part,
// place_parts.cuh counts them itself.
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/ops/csr/buckets.cuh"

namespace tensorcraft::kernel::csr {

struct CountParts {
  template <Config C>
  TC_DEVICE static void run(const Params& p) {
    auto& shared = dynamic_shared<BucketShared<C>>();
    const uint32_t columns = 1u << p.low_bits;
    uint32_t* const counts = shared.places.begin;
    for (int64_t number = blockIdx.x;; number += gridDim.x) {
      const AllParts all = find_part<C>(p, number, shared.sums, shared.part);
      if (number >= all.parts || all.parts == p.buckets) return;
      const Part part = shared.part;
      if (part.is_bucket()) continue;
      for (uint32_t c = threadIdx.x; c < columns; c += C.threads) counts[c] = 0;
      gather<C>(p, part, shared.chunks, shared.elements);
      for (int i = int(threadIdx.x); i < part.size; i += C.threads)
        atomic_add(&counts[shared.elements[i].word & (columns - 1)], 1u);
      __syncthreads();
      for (uint32_t c = threadIdx.x; c < columns; c += C.threads)
        part_counts(p, number)[c] = uint16_t(counts[c]);
    }
  }
};

}  // namespace tensorcraft::kernel::csr

// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block a bucket: how many of its elements are in the chunks in front of each, and in all.
#include "tensorcraft/ops/csr/buckets.cuh"

namespace tensorcraft::kernel::csr {

struct ScanRuns {
  template <class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int kEach = 4;
    auto& sums = static_shared<BlockScan<int64_t>>();
    const int bucket = int(blockIdx.x);
    const uint16_t *const begins = run_places(p, bucket), *const ends = run_places(p, bucket + 1);
    int64_t all = 0;
    for (int64_t turn = 0; turn < p.chunks; turn += C.threads * kEach) {
      const int64_t first = turn + int64_t(threadIdx.x) * kEach;
      int counts[kEach];
      int64_t own = 0;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        counts[i] = first + i < p.chunks ? int(ends[first + i]) - int(begins[first + i]) : 0;
        own += counts[i];
      }
      int64_t at = sum_in_front<C.threads>(sums, own, all);
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (first + i < p.chunks) run_begins(p, bucket)[first + i] = uint32_t(at);
        at += counts[i];
      }
    }
    if (threadIdx.x != 0) return;
    run_begins(p, bucket)[p.chunks] = uint32_t(all);
    bucket_totals(p)[bucket] = uint32_t(all);
  }
};

}  // namespace tensorcraft::kernel::csr

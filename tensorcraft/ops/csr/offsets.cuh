// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts become the places where they begin. A block has a chunk of them, in turns of four
// neighbours a thread, and adds up all counts in front of its chunk itself: that is a read of L2
// and no further step.
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/scan.cuh"
#include "tensorcraft/ops/csr/params.h"

namespace tensorcraft::kernel::csr {

struct ChunkSums {
  BlockScan<int64_t> scan;
  BlockReduce<int64_t> before;
};

struct Offsets {
  template <class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int kEach = 4, kTurn = C.threads * kEach;
    auto& sums = static_shared<ChunkSums>();
    const int64_t count = p.a.rows, begin = int64_t(blockIdx.x) * kChunk;
    const int64_t end = count - begin < kChunk ? count : begin + kChunk;

    int64_t own_before = 0;
#pragma unroll 8
    for (int64_t i = threadIdx.x; i < begin; i += C.threads) own_before += counters(p)[i];
    int64_t before = block_sum(sums.before, own_before);

    for (int64_t turn = begin; turn < end; turn += kTurn) {
      const int64_t first = turn + int64_t(threadIdx.x) * kEach;
      int64_t own = 0, counts[kEach];
      for (int i = 0; i < kEach; ++i) {
        counts[i] = first + i < end ? int64_t(counters(p)[first + i]) : 0;
        own += counts[i];
      }
      int64_t at = sum_in_front<C.threads>(sums.scan, own, before);
      for (int i = 0; i < kEach; ++i) {
        if (first + i < end) element_of<I>(p.indptr, first + i) = I(at);
        at += counts[i];
      }
    }
    if (threadIdx.x == 0 && end == count) element_of<I>(p.indptr, count) = I(before);
  }
};

}  // namespace tensorcraft::kernel::csr

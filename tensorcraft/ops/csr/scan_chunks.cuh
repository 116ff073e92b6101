// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block 32 columns, each warp a part of the chunks: counts become the elements of the column in
// front of each chunk, and the sum of all is the column's own count.
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/csr/chunks.cuh"

namespace tensorcraft::kernel::csr {

template <int kParts>
struct PartSums {
  uint32_t of[kParts][kWarpSize];
};

struct ScanChunks {
  template <class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int kParts = C.threads / kWarpSize;
    auto& sums = static_shared<PartSums<kParts>>();
    const int lane = int(threadIdx.x) % kWarpSize, part = int(threadIdx.x) / kWarpSize;
    const int64_t column = int64_t(blockIdx.x) * kWarpSize + lane;
    const int64_t each = div_ceil(p.chunks, int64_t(kParts)), first = part * each;
    const int64_t last = first + each < p.chunks ? first + each : p.chunks;
    const bool exists = column < p.a.cols;

    uint32_t sum = 0;
#pragma unroll 8
    for (int64_t chunk = first; chunk < last; ++chunk)
      if (exists) sum += chunk_counters(p, chunk)[column];
    sums.of[part][lane] = sum;
    __syncthreads();
    if (!exists) return;
    uint32_t before = 0;
    for (int i = 0; i < part; ++i) before += sums.of[i][lane];
    if (part == kParts - 1) counters(p)[column] = before + sum;
#pragma unroll 8
    for (int64_t chunk = first; chunk < last; ++chunk) {
      uint32_t& count = chunk_counters(p, chunk)[column];
      const uint32_t own = count;
      count = before;
      before += own;
    }
  }
};

}  // namespace tensorcraft::kernel::csr

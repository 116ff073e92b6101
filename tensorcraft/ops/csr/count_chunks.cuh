// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block a chunk: how many of its elements each column has.
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/ops/csr/chunks.cuh"

namespace tensorcraft::kernel::csr {

struct CountChunks {
  template <class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    uint32_t* const counts = dynamic_shared<ColumnCounters>().of;
    const int columns = int(p.a.cols);
    for (int c = int(threadIdx.x); c < columns; c += C.threads) counts[c] = 0;
    __syncthreads();
    const Chunk<I> chunk(p);
#pragma unroll 8
    for (int64_t k = chunk.begin + threadIdx.x; k < chunk.end; k += C.threads)
      if (const int column = column_of<I>(p, k); column >= 0) atomic_add(&counts[column], 1u);
    __syncthreads();
    uint32_t* const to = chunk_counters(p, blockIdx.x);
    for (int c = int(threadIdx.x); c < columns; c += C.threads) to[c] = counts[c];
  }
};

}  // namespace tensorcraft::kernel::csr

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chunks of stored elements, or of rows, and a counter for each of their columns.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/csr/params.h"

namespace tensorcraft::kernel::csr {

// As many as there are columns.
struct ColumnCounters {
  uint32_t of[1];
};

// The counters of a chunk in the workspace, behind those of whole columns.
TC_DEVICE uint32_t* chunk_counters(const Params& p, int64_t chunk) {
  return counters(p) + (1 + chunk) * p.a.cols;
}

// The stored elements of a block's chunk, those in front of the first row and behind the last left
// out.
template <class I>
struct Chunk {
  int64_t begin, end;

  TC_DEVICE explicit Chunk(const Params& p) {
    const int64_t first = int64_t(row_begin<I>(p.a, 0));
    const int64_t last = int64_t(row_begin<I>(p.a, p.a.rows));
    begin = int64_t(blockIdx.x) * p.chunk;
    end = begin + p.chunk < last ? begin + p.chunk : last;
    begin = begin > first ? begin : first;
  }
};

}  // namespace tensorcraft::kernel::csr

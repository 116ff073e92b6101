// SPDX-License-Identifier: Apache-2.0
#pragma once
// A counting sort by chunks of stored elements: each block has one, and a counter for each column
// in its shared memory. count_chunks.cuh counts, scan_chunks.cuh says where a chunk's elements of a
// column begin among those of the column, offsets.cuh where columns begin, and place_chunks.cuh
// puts the elements there, in their order.
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

// The column of stored element k; -1 if it is outside the matrix.
template <class I>
TC_DEVICE int column_of(const Params& p, int64_t k) {
  const I column = static_cast<const I*>(p.a.indices)[k * p.a.indices_stride];
  return is_column(p.a, column) ? int(column) : -1;
}

}  // namespace tensorcraft::kernel::csr

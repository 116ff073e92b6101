// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tile is some chunks of rows and a bucket of columns. Where a row's columns ascend, its elements
// of a bucket are neighbours, a run. count_tiles.cuh lists runs and counts the elements of columns,
// scan_chunks.cuh says what columns have in front of each chunk, and place_tiles.cuh sorts the
// elements of each tile by column in shared memory, and writes them to their places.
#include "tensorcraft/ops/csr/chunks.cuh"

namespace tensorcraft::kernel::csr {

// The row's columns do not ascend: each tile goes over the whole row.
inline constexpr uint32_t kWholeRow = ~0u;

// Where the runs of a row begin, by buckets; that of the next bucket is where a run ends.
TC_DEVICE uint32_t* run_begins_of_row(const Params& p, int64_t row) {
  return chunk_counters(p, p.chunks) + row * (p.buckets + 1);
}

}  // namespace tensorcraft::kernel::csr

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/csr.h"

namespace tensorcraft::kernel::csr {

// Run time, of all kernels of the folder. An output array and the elements between its own.
struct Output {
  void* data;
  int64_t stride;
};
struct Params {
  Csr a;  // what is read
  Output data, indices, indptr;
  void* dense;
  int64_t dense_strides[2];
  void* workspace;
  int64_t chunk = 0, chunks = 0;  // csr_transpose: stored elements of a block, and blocks
};

struct Config {
  int threads = 256;
};

// What the report knows of rows: the largest of each but `empty_rows`, which is a sum. A first row
// is kept as the rows from it on, so that 0 is none and the largest is the first.
struct Facts {
  int64_t longest_row, empty_rows, bad_offsets, bad_indices, repeated;
};
inline constexpr int kFactBlocks = 1024;  // at most so many look at rows

// Counts that a block of offsets.cuh adds up.
inline constexpr int64_t kChunk = 16384;

template <class T>
TC_HOST_DEVICE T& element_of(const Output& out, int64_t i) {
  return static_cast<T*>(out.data)[i * out.stride];
}

// The counters of the columns, twice: of those that there are, and of those that have a place.
TC_HOST_DEVICE uint32_t* counters(const Params& p) { return static_cast<uint32_t*>(p.workspace); }

}  // namespace tensorcraft::kernel::csr

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
  int64_t dense_strides[2] = {};
  void* workspace = nullptr;
  int64_t chunk = 0, chunks = 0;      // csr_transpose: stored elements of one, or rows; of all
  int low_bits = 0, bucket_bits = 0;  // csr_transpose, buckets: of a column within one, of one
  int buckets = 0;
};

struct Config {
  int threads = 256;
};

// The report's facts of rows: the largest of each but `empty_rows`, which is a sum. A first row
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

// Buckets: elements of a thread of a block that has a chunk, or a part of a bucket; the most
// buckets, and columns of one; and the dynamic shared memory of both.
inline constexpr int kElementsOfThread = 16, kMostKeyBits = 10, kMostKeys = 1 << kMostKeyBits;
TC_HOST_DEVICE constexpr int elements_of_block(const Config& c) {
  return c.threads * kElementsOfThread;
}
TC_HOST_DEVICE constexpr int bucket_shared_bytes(const Config& c) {
  return elements_of_block(c) * 8 + c.threads / 32 * kMostKeys * 2 + 2 * kMostKeys * 4 + 1024;
}

// The contents of buckets' workspace, and where they lie: elements by chunks, which are in the
// order of buckets; the elements of each bucket; those in front of a chunk's run of a bucket, and
// of all its runs; where a run begins in its chunk; and how many elements of a column a part of a
// bucket has.
inline constexpr int kCarriedBytes = 8;
TC_HOST_DEVICE int64_t totals_at(const Params& p) { return p.a.stored * kCarriedBytes; }
TC_HOST_DEVICE int64_t run_begins_at(const Params& p) {
  return totals_at(p) + int64_t(p.buckets) * 4;
}
TC_HOST_DEVICE int64_t run_places_at(const Params& p) {
  return run_begins_at(p) + p.buckets * (p.chunks + 1) * 4;
}
TC_HOST_DEVICE int64_t part_counts_at(const Params& p) {
  return run_places_at(p) + (p.buckets + 1) * p.chunks * 2;
}
// Parts that there may be; each bucket has one.
TC_HOST_DEVICE int64_t most_parts(const Params& p, const Config& c) {
  return p.a.stored / elements_of_block(c) + p.buckets;
}

// Tiles: the most columns of one; rows whose elements are sorted at once; chunks of rows, which are
// counted, of one; and stretches of up to 32 elements of a row that a warp has at a time.
inline constexpr int kTileColumns = 512, kTileRows = 252, kChunksOfTile = 4, kStretches = 18;
TC_HOST_DEVICE constexpr int tile_shared_bytes(const Config& c) {
  return c.threads * kStretches * 8 + c.threads / 32 * (kTileColumns * 2 + kStretches * 8) +
         2 * kTileColumns * 4 + 1024;
}

// The counters of the columns, twice: of those that there are, and of those that have a place.
TC_HOST_DEVICE uint32_t* counters(const Params& p) { return static_cast<uint32_t*>(p.workspace); }

}  // namespace tensorcraft::kernel::csr

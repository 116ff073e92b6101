// SPDX-License-Identifier: Apache-2.0
#pragma once
// A sort by buckets of neighbouring columns. bucket_chunks.cuh sorts each chunk by itself, so all
// it writes is in one place; scan_runs.cuh says which elements of a bucket a chunk has; and
// place_parts.cuh gathers those of a part of a bucket, sorts them by column and writes whole lines.
// An element is read twice and written twice, and once more where buckets have several parts, whose
// columns count_parts.cuh counts first.
#include "tensorcraft/device/ptx/cp_async.cuh"
#include "tensorcraft/ops/csr/chunks.cuh"
#include "tensorcraft/ops/csr/key_places.cuh"

namespace tensorcraft::kernel::csr {

template <class A>
TC_DEVICE A* in_workspace(const Params& p, int64_t bytes) {
  return reinterpret_cast<A*>(static_cast<unsigned char*>(p.workspace) + bytes);
}
TC_DEVICE Carried* carried_elements(const Params& p) { return in_workspace<Carried>(p, 0); }
TC_DEVICE uint32_t* bucket_totals(const Params& p) {
  return in_workspace<uint32_t>(p, totals_at(p));
}
// By chunks, and all of them.
TC_DEVICE uint32_t* run_begins(const Params& p, int bucket) {
  return in_workspace<uint32_t>(p, run_begins_at(p)) + bucket * (p.chunks + 1);
}
// By chunks; that of the next bucket is where the run ends.
TC_DEVICE uint16_t* run_places(const Params& p, int bucket) {
  return in_workspace<uint16_t>(p, run_places_at(p)) + bucket * p.chunks;
}
// By columns of the bucket.
TC_DEVICE uint16_t* part_counts(const Params& p, int64_t part) {
  return in_workspace<uint16_t>(p, part_counts_at(p)) + (part << p.low_bits);
}

// The last of so many ascending values that is at most k, as the first is; by a warp.
template <class Value>
TC_DEVICE int64_t last_up_to(int64_t count, int64_t k, Value value) {
  int64_t from = 0;
  while (count > 1) {
    const int64_t step = div_ceil(count, int64_t(kWarpSize + 1));
    const int64_t at = (int64_t(threadIdx.x) % kWarpSize + 1) * step;
    const bool is_in_front = at < count && value(from + at) <= k;
    const int64_t skipped = count_bits(__ballot_sync(kFullWarp, is_in_front)) * step;
    from += skipped;
    count = count - skipped < step ? count - skipped : step;
  }
  return from;
}

// The elements of a block by warps: lane l of a warp has those at first + 32 i + l.
template <Config C>
struct WarpShare {
  static constexpr int each = kElementsOfThread;
  int first, last;

  TC_DEVICE explicit WarpShare(int size) {
    const int share = round_up(div_ceil(size, C.threads / kWarpSize), kWarpSize);
    first = int(threadIdx.x) / kWarpSize * share;
    last = first + share < size ? first + share : size;
  }
  TC_DEVICE int at(int i) const { return first + i * kWarpSize + int(threadIdx.x) % kWarpSize; }
  // Has the warp some of these?
  TC_DEVICE bool has(int i) const { return first + i * kWarpSize < last; }
};

// A bucket's elements, in order, are parts as large as a block holds; each bucket has one. That of
// a block:
struct Part {
  int bucket;               // -1: it has none
  int size;                 // beside the other int, so that no byte is left unwritten
  int64_t begin, elements;  // of the bucket, in the result and in all
  int64_t index;            // among those of the bucket
  int64_t number;           // among all
  int64_t first;            // element of the bucket

  TC_DEVICE bool is_bucket() const { return size == elements; }
};
template <Config C>
TC_DEVICE int64_t parts_of(int64_t elements) {
  constexpr int64_t kMost = elements_of_block(C);
  return elements > kMost ? div_ceil(elements, kMost) : 1;
}

// The chunks that have elements of a part.
struct Chunks {
  int64_t first, last;
};

// All shared memory of a block.
template <Config C>
struct BucketShared {
  static constexpr int size = elements_of_block(C);

  union {
    Carried elements[size];
    uint32_t rows[size];  // of the elements of a chunk
  };
  KeyPlaces<C, kMostKeys> places;
  uint32_t column_begins[kMostKeys];
  BlockScan<int64_t> sums;
  Chunks chunks;
  Part part;
};

// Counts over all buckets.
struct AllParts {
  int64_t elements, parts;
};
// Finds a part, if there is one of that number.
template <Config C>
TC_DEVICE AllParts find_part(const Params& p, int64_t number, BlockScan<int64_t>& sums,
                             Part& shared) {
  constexpr int kMost = elements_of_block(C);
  __syncthreads();  // the part before is read
  if (threadIdx.x == 0) shared.bucket = -1;
  int64_t all = 0;  // parts in the upper half, elements in the lower
  for (int turn = 0; turn < p.buckets; turn += C.threads) {
    const int bucket = turn + int(threadIdx.x);
    const int64_t elements = bucket < p.buckets ? bucket_totals(p)[bucket] : 0;
    const int64_t parts = bucket < p.buckets ? parts_of<C>(elements) : 0;
    const int64_t before = sum_in_front<C.threads>(sums, parts << 32 | elements, all);
    const int64_t index = number - (before >> 32);
    if (index < 0 || index >= parts) continue;
    const int64_t left = elements - index * kMost;
    shared = {.bucket = bucket,
              .size = int(left < kMost ? left : kMost),
              .begin = int64_t(uint32_t(before)),
              .elements = elements,
              .index = index,
              .number = number,
              .first = index * kMost};
  }
  __syncthreads();
  return {int64_t(uint32_t(all)), all >> 32};
}

// Brings the part's elements to shared memory: each run by some lanes, by as many as suit its
// length in the mean. Between barriers.
template <Config C>
TC_DEVICE void gather(const Params& p, const Part& part, Chunks& shared, Carried* elements) {
  constexpr int kAhead = 4;
  const uint32_t* const begins = run_begins(p, part.bucket);
  const uint16_t* const places = run_places(p, part.bucket);
  const int64_t end = part.first + part.size;
  int64_t first = 0, last = p.chunks - 1;
  if (!part.is_bucket()) {
    const auto begin_of = [&](int64_t chunk) { return int64_t(begins[chunk]); };
    const int warp = int(threadIdx.x) / kWarpSize;
    if (warp < 2) {
      const int64_t chunk = last_up_to(p.chunks, warp == 0 ? part.first : end - 1, begin_of);
      if (int(threadIdx.x) % kWarpSize == 0) (warp == 0 ? shared.first : shared.last) = chunk;
    }
    __syncthreads();
    first = shared.first;
    last = shared.last;
  }
  int lanes = 8;
  while (lanes < C.threads && lanes * (last - first + 1) < part.size) lanes *= 2;
  const int lane = int(threadIdx.x) % lanes, groups = C.threads / lanes;
  for (int64_t chunk = first + int(threadIdx.x) / lanes; chunk <= last; chunk += kAhead * groups) {
    const Carried* from[kAhead];
    int to[kAhead], size[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const bool exists = chunk + i * groups <= last;
      const int64_t own = exists ? chunk + i * groups : last;
      const int64_t run = begins[own], run_end = begins[own + 1];
      const int64_t low = run > part.first ? run : part.first;
      size[i] = exists ? int((run_end < end ? run_end : end) - low) : 0;
      to[i] = int(low - part.first);
      from[i] = carried_elements(p) + own * p.chunk + places[own] + (low - run);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
      for (int k = lane; k < size[i]; k += lanes)
        ptx::cp_async_ca_8(&elements[to[i] + k], from[i] + k, kCarriedBytes);
  }
  ptx::cp_async_wait_all();
  __syncthreads();
}

}  // namespace tensorcraft::kernel::csr

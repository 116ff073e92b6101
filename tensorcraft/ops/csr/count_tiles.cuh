// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block a chunk of rows, a warp a row: how many elements each column has. Then lanes search the
// row, which the cache has, for where the runs of buckets begin.
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/csr/tiles.cuh"

namespace tensorcraft::kernel::csr {

// A row of which a warp takes the elements.
template <class I>
struct CountedRow {
  using Unsigned = Select<sizeof(I) == 4, uint32_t, uint64_t>;
  const Params& p;
  const int64_t begin;
  const int size;

  TC_DEVICE CountedRow(const Params& params, int64_t row)
      : p(params), begin(int64_t(row_begin<I>(params.a, row))), size(size_of(row)) {}
  TC_DEVICE int size_of(int64_t row) const {
    const int64_t end = int64_t(row_begin<I>(p.a, row + 1));
    return begin < end ? int(end - begin) : 0;
  }
  TC_DEVICE I index(int k) const {
    return static_cast<const I*>(p.a.indices)[(begin + k) * p.a.indices_stride];
  }

  // Adds its elements to the counts of columns. Do its columns ascend, inside the matrix?
  TC_DEVICE bool count(uint32_t* counts) const {
    constexpr int kAhead = 64 / int(sizeof(I));
    const int lane = int(threadIdx.x) % kWarpSize;
    int last = -1;  // column of the element before
    bool ascends = true;
    for (int turn = 0; turn < size; turn += kAhead * kWarpSize) {
      I listed[kAhead];  // those behind the row are its last
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int k = turn + i * kWarpSize + lane;
        listed[i] = index(k < size ? k : size - 1);
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int k = turn + i * kWarpSize + lane;
        if (k - lane >= size) break;
        const int column = Unsigned(listed[i]) < Unsigned(p.a.cols) ? int(listed[i]) : -1;
        const int neighbour = __shfl_up_sync(kFullWarp, column, 1u);
        const bool exists = k < size;
        ascends = ascends && (!exists || column > (lane == 0 ? last : neighbour));
        last = warp_broadcast(column, kWarpSize - 1);
        if (exists && column >= 0) atomic_add(&counts[column], 1u);
      }
    }
    return warp_all(ascends);
  }

  // The first of the ascending elements that is not in front of the bucket.
  TC_DEVICE int first_of(int bucket) const {
    const int64_t column = int64_t(bucket) << p.low_bits;
    int low = 0, high = size;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (int64_t(index(middle)) < column)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
};

struct CountTiles {
  template <class I>
  TC_DEVICE static void list(const Params& p, int64_t row, uint32_t* counts) {
    const CountedRow<I> own(p, row);
    const bool ascends = own.count(counts);
    uint32_t* const run_begins = run_begins_of_row(p, row);
    for (int bucket = int(threadIdx.x) % kWarpSize; bucket <= p.buckets; bucket += kWarpSize)
      run_begins[bucket] = ascends ? uint32_t(own.begin + own.first_of(bucket)) : kWholeRow;
  }
  template <class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    uint32_t* const counts = dynamic_shared<ColumnCounters>().of;
    const int columns = int(p.a.cols), warp = int(threadIdx.x) / kWarpSize;
    for (int c = int(threadIdx.x); c < columns; c += C.threads) counts[c] = 0;
    __syncthreads();
    const int64_t begin = int64_t(blockIdx.x) * p.chunk;
    const int64_t end = begin + p.chunk < p.a.rows ? begin + p.chunk : p.a.rows;
    for (int64_t row = begin + warp; row < end; row += C.threads / kWarpSize)
      list<I>(p, row, counts);
    __syncthreads();
    uint32_t* const to = chunk_counters(p, blockIdx.x);
    for (int c = int(threadIdx.x); c < columns; c += C.threads) to[c] = counts[c];
  }
};

}  // namespace tensorcraft::kernel::csr

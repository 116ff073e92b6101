// SPDX-License-Identifier: Apache-2.0
#pragma once
// Each column in the order of rows. One of up to 32 elements is a warp's, and each element counts
// those in front of it; up to 256 a warp sorts in shared memory, up to as many as all warps have
// there the block, more the block in place (bitonic: all comparisons put the smaller in front, so
// what lies past the end takes part as the largest).
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/csr/left_out.cuh"
#include "tensorcraft/ops/csr/params.h"

namespace tensorcraft::kernel::csr {

// An element of a column; equal rows go by their bits, so that results repeat.
template <class T, class I>
struct Entry {
  I row;
  T value;
  TC_DEVICE bool is_before(const Entry& other) const {
    return row != other.row ? row < other.row : value < other.value;
  }
};

template <class T, class I>
struct Column {
  const Params& p;
  int64_t begin, size;

  TC_DEVICE Column(const Params& params, int64_t column) : p(params), begin(0), size(0) {
    if (column >= p.a.cols) return;
    begin = element_of<I>(p.indptr, column);
    size = int64_t(element_of<I>(p.indptr, column + 1)) - begin;
  }
  TC_DEVICE Entry<T, I> get(int64_t i) const {
    return {element_of<I>(p.indices, begin + i), element_of<T>(p.data, begin + i)};
  }
  TC_DEVICE void set(int64_t i, const Entry<T, I>& entry) const {
    element_of<I>(p.indices, begin + i) = entry.row;
    element_of<T>(p.data, begin + i) = entry.value;
  }
};

// Up to 32 elements, by the warp.
template <class T, class I>
TC_DEVICE void sort_by_ranks(const Column<T, I>& column) {
  const int lane = int(threadIdx.x) % kWarpSize;
  const bool exists = lane < column.size;
  const Entry<T, I> own = exists ? column.get(lane) : Entry<T, I>{};
  int rank = 0;
  for (int i = 0; i < int(column.size); ++i) {
    const Entry<T, I> other{warp_broadcast(own.row, i), T(warp_broadcast(int(own.value), i))};
    rank += other.is_before(own) || (i < lane && !own.is_before(other));
  }
  __syncwarp();
  if (exists) column.set(rank, own);
}

// The columns that the warps of a block sort at a time.
inline constexpr int kSharedColumn = 256;
template <class T, class I, int kWarps>
struct WarpColumns {
  Entry<T, I> of[kWarps][kSharedColumn];
};
template <class T, class I>
struct SharedColumn {
  Entry<T, I>* entries;
  TC_DEVICE Entry<T, I> get(int64_t i) const { return entries[i]; }
  TC_DEVICE void set(int64_t i, const Entry<T, I>& entry) const { entries[i] = entry; }
};

// Any number of elements, by kThreads threads: a warp, or the block.
template <int kThreads, class AnyColumn>
TC_DEVICE void sort_together(const AnyColumn& column, int64_t size) {
  for (int64_t part = 2; part / 2 < size; part *= 2)
    for (int64_t step = part / 2; step > 0; step /= 2) {
      const int64_t flips = step == part / 2 ? part - 1 : step;
      for (int64_t i = threadIdx.x % kThreads; i < size; i += kThreads) {
        const int64_t j = i ^ flips;
        if (j <= i || j >= size) continue;
        const auto a = column.get(i), b = column.get(j);
        if (!b.is_before(a)) continue;
        column.set(i, b);
        column.set(j, a);
      }
      if constexpr (kThreads == kWarpSize)
        __syncwarp();
      else
        __syncthreads();
    }
}

// Up to kSharedColumn elements, by the warp.
template <class T, class I>
TC_DEVICE void sort_in_shared(const Column<T, I>& column, Entry<T, I>* entries) {
  const int lane = int(threadIdx.x) % kWarpSize;
  for (int i = lane; i < int(column.size); i += kWarpSize) entries[i] = column.get(i);
  __syncwarp();
  sort_together<kWarpSize>(SharedColumn<T, I>{entries}, column.size);
  for (int i = lane; i < int(column.size); i += kWarpSize) column.set(i, entries[i]);
}

// Up to as many as all warps have, by the block.
template <int kThreads, class T, class I>
TC_DEVICE void sort_by_block(const Column<T, I>& column, Entry<T, I>* entries) {
  __syncthreads();  // what was there is done
  for (int i = int(threadIdx.x); i < int(column.size); i += kThreads) entries[i] = column.get(i);
  __syncthreads();
  sort_together<kThreads>(SharedColumn<T, I>{entries}, column.size);
  for (int i = int(threadIdx.x); i < int(column.size); i += kThreads) column.set(i, entries[i]);
}

struct SortColumns {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int kWarps = C.threads / kWarpSize;
    auto& shared = static_shared<WarpColumns<T, I, kWarps>>();
    const int warp = int(threadIdx.x) / kWarpSize;
    const int64_t first = int64_t(blockIdx.x) * kWarps;
    const Column<T, I> own(p, first + warp);
    if (own.size > 1 && own.size <= kWarpSize)
      sort_by_ranks(own);
    else if (own.size > kWarpSize && own.size <= kSharedColumn)
      sort_in_shared(own, shared.of[warp]);
    for (int w = 0; w < kWarps; ++w) {
      const Column<T, I> column(p, first + w);
      if (column.size <= kSharedColumn) continue;
      if (column.size > kWarps * kSharedColumn)
        sort_together<C.threads>(column, column.size);
      else
        sort_by_block<C.threads>(column, shared.of[0]);
    }
    clear_left_out<T, I, C>(p, int64_t(element_of<I>(p.indptr, p.a.cols)), blockIdx.x, gridDim.x);
  }
};

}  // namespace tensorcraft::kernel::csr

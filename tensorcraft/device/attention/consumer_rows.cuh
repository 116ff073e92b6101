// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/key_parts.h"
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/device/ptx/barrier.cuh"
#include "tensorcraft/device/ptx/bulk.cuh"
#include "tensorcraft/device/ptx/stmatrix.cuh"
#include "tensorcraft/device/attention/ring.cuh"
#include "tensorcraft/device/attention/weighted_sums.cuh"

namespace tensorcraft::kernel::attention_tiles {

// The 64 rows of a consumer: queries of a head or of packed ones, and how their results leave. If
// values are keys all consumers have the same rows, and those from number 1 on other columns.
template <class T, Config C>
struct ConsumerRows {
  Ring<T, C>& ring;
  const HopperParams& p;
  int group;  // number among the consumers

  static_assert(kGroupRows % packed_heads(C) == 0);
  static constexpr int kPacked = packed_heads(C), kColumns = values_of_consumer(C);
  TC_DEVICE int first_row() const { return values_are_keys(C) ? 0 : group * kGroupRows; }
  TC_DEVICE int first_column() const { return values_are_keys(C) ? (group - 1) * kColumns : 0; }
  // The query of the tile and the head that a row has.
  TC_DEVICE static int query_of(int row) { return row / kPacked; }
  TC_DEVICE static int head_of(const Work<C>& w, int row) { return w.head + row % kPacked; }
  TC_DEVICE int rows_of_group(const Work<C>& w) const { return w.rows * kPacked - first_row(); }
  // The number of a row among the results that are not rows of values.
  TC_DEVICE int64_t place_of(const Work<C>& w, int row) const {
    const int query = w.first + query_of(row), head = head_of(w, row);
    if constexpr (C.packed > 0) return (int64_t(w.batch) * p.seq_q + query) * p.heads + head;
    return (int64_t(w.batch) * p.heads + head) * p.seq_q + query;
  }
  TC_DEVICE static bool leads() { return threadIdx.x % kWarpgroup == 0; }
  TC_DEVICE void meet() const { ptx::bar_sync(kOneConsumer + group, kWarpgroup); }

  // The copy engine stores the rows. They pass through shared memory, which nothing else reads
  // then: that of this consumer's queries, or of the output before.
  TC_DEVICE void store_rows(const Work<C>& w, const WeightedSums<T, C>& out,
                            const float (&inverse)[2]) const {
    if (leads()) ptx::cp_async_bulk_wait_group_read<0>();
    meet();
    put(out, inverse);
    ptx::fence_proxy_async();
    meet();
    const int rows = rows_of_group(w);
    if (C.options >= kRanges && rows > 0 && rows < kGroupRows && w.first + w.rows < p.seq_q)
      store_some(w, rows);
    else if (leads())
      store(w);
  }
  TC_DEVICE KeyParts parts_in_memory() const {
    return {p.parts, int64_t(p.batch) * p.heads * p.seq_q, p.num_parts, dim_of_values(C), 1};
  }
  // Writes what a part gives: of one of a thread's two rows, and the values of both.
  TC_DEVICE void store_sum(const Work<C>& w, int part, int half, const RowSum& found) const {
    const int row = first_row() + sums_row<false>(half);
    if (threadIdx.x % 4 == 0 && query_of(row) < w.rows)
      *parts_in_memory().sum_of(place_of(w, row), part) = found;
  }
  TC_DEVICE void store_values(const Work<C>& w, int part, const WeightedSums<T, C>& out) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row() + sums_row<false>(half), lane = int(threadIdx.x) % 4;
      const bool is_there = query_of(row) < w.rows;  // a branch costs registers of products
      float* const to =
          parts_in_memory().values_of(place_of(w, row), part) + first_column() + 2 * lane;
#pragma unroll
      for (int j = 0; j < kColumns / 8; ++j) {
        AlignedVector<float, 2> pair;
        for (int e = 0; e < 2; ++e) pair[e] = *out.at(4 * j + 2 * half + e);
        if (is_there) store_vector(to + 8 * j, pair);
      }
    }
  }
  // That work: looked up by the producer if it may be one of a ragged batch.
  TC_DEVICE Work<C> work(int number) const {
    if constexpr (C.options >= kRanges) return ring.work.of_warp();
    return Work<C>(p, number);
  }
  TC_DEVICE void release_queries() const { ptx::mbarrier_arrive(&ring.q_empty); }
  // Says by one arrival of each warp that it has done what others wait for.
  TC_DEVICE static void release(uint64_t* barrier) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(barrier);
  }
  // Tells what a thread knows of its two rows.
  template <class X>
  TC_DEVICE static void share(X (&of_rows)[C.block_m], const X (&x)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (threadIdx.x % 4 == 0) of_rows[sums_row<false>(half)] = x[half];
  }
  // Before the block ends: the rows have been read.
  TC_DEVICE void finish_stores() const {
    if (leads()) ptx::cp_async_bulk_wait_group_read<0>();
  }

 private:
  static constexpr int kBoxed = round_up(kColumns, 64);
  TC_DEVICE void put(const WeightedSums<T, C>& out, const float (&inverse)[2]) const {
    auto* bytes = reinterpret_cast<unsigned char*>(&ring.q[C.out_tile]);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;  // consumers are the first warps
    const int row = (values_are_keys(C) ? warp % kWarpsOfGroup : warp) * 16 + lane % 16;
#pragma unroll
    for (int j = 0; j < kBoxed / 16; ++j) {
      uint32_t words[4] = {};  // the copy engine reads whole boxes
#pragma unroll
      for (int e = 0; e < 4 && j < kColumns / 16; ++e) {
        const float* x = out.at(8 * j + 2 * e);
        words[e] = pack_pair(x[0] * inverse[e % 2], x[1] * inverse[e % 2], Output<T, C>{});
      }
      const int chunk = first_column() / 8 + 2 * j + lane / 16;
      ptx::stmatrix_x4(bytes + Ring<T, C>::Outputs::place(row, chunk), words);
    }
  }
  TC_DEVICE void store(const Work<C>& w) const {
    const int row = w.first + query_of(first_row());
    const auto* bytes = reinterpret_cast<const unsigned char*>(&ring.q[C.out_tile]);
#pragma unroll
    for (int i = 0; i < kBoxed / 64; ++i) {
      const int column = first_column() + i * 64;
      const int32_t at[4] = {column, C.packed ? w.head : row, C.packed ? row : w.head, w.batch};
      if (rows_of_group(w) > 0)
        ptx::tma_store(&p.out_map, at, bytes + Ring<T, C>::Outputs::place(first_row(), column / 8));
    }
    ptx::cp_async_bulk_commit_group();
  }
  // The last rows of a request, which another one follows.
  TC_DEVICE void store_some(const Work<C>& w, int rows) const {
    using Out = Output<T, C>;
    constexpr int chunks = kColumns / kVectorSize<Out>;
    const auto* bytes = reinterpret_cast<const unsigned char*>(&ring.q[C.out_tile]);
    Out* out = static_cast<Out*>(p.out) + w.batch * p.out_strides.batch +
               w.head * p.out_strides.head + (w.first + query_of(first_row())) * p.out_strides.row;
    for (int i = threadIdx.x % kWarpgroup; i < rows * chunks; i += kWarpgroup) {
      const int row = i / chunks, chunk = first_column() / kVectorSize<Out> + i % chunks;
      if (chunk * kVectorSize<Out> >= p.v_dim) continue;
      const int64_t at = query_of(row) * p.out_strides.row + row % kPacked * p.out_strides.head;
      *reinterpret_cast<Vec4<uint32_t>*>(out + at + chunk * kVectorSize<Out>) =
          *reinterpret_cast<const Vec4<uint32_t>*>(
              bytes + Ring<T, C>::Outputs::place(first_row() + row, chunk));
    }
  }
};

}  // namespace tensorcraft::kernel::attention_tiles

// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block sorts its chunk by buckets, in shared memory, and writes it where the chunk is, so that
// all stores are whole lines. A warp finds the row of its first element, and lists those of the
// others in shared memory, row by row.
#include "tensorcraft/ops/csr/buckets.cuh"

namespace tensorcraft::kernel::csr {

template <class T, Config C>
struct ChunkThread {
  static constexpr int each = kElementsOfThread;
  static constexpr uint32_t none = ~0u;

  const Params& p;
  BucketShared<C>& shared;
  WarpShare<C> share;
  uint32_t words[each];  // columns until rows are known
  uint32_t keys[each];   // buckets, and above them ranks; none: no element

  // An element of the warp's share: without a condition, loads need not wait for one another.
  TC_DEVICE int near(int i) const {
    const int at = share.at(i);
    return at < share.last ? at : share.last - 1;
  }

  template <class I>
  TC_DEVICE void load_columns(int64_t begin) {
    const I* const indices = static_cast<const I*>(p.a.indices) + begin * p.a.indices_stride;
    I columns[each];
#pragma unroll
    for (int i = 0; i < each; ++i)
      columns[i] = share.has(0) ? indices[near(i) * p.a.indices_stride] : I(-1);
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const bool exists = share.at(i) < share.last && is_column(p.a, columns[i]);
      words[i] = exists ? uint32_t(columns[i]) : none;
    }
  }

  TC_DEVICE void rank() {
#pragma unroll
    for (int i = 0; i < each; ++i) {
      keys[i] = none;
      if (!share.has(i)) continue;
      const int bucket = int(words[i]) >> p.low_bits;  // -1 stays -1
      const uint32_t rank = shared.places.rank(bucket, lanes_of_key(bucket, p.bucket_bits));
      if (bucket >= 0) keys[i] = rank << kMostKeyBits | uint32_t(bucket);
    }
  }

  // The rows of the warp's elements. Some lanes write each of 32 rows at a time.
  template <class I>
  TC_DEVICE void list_rows(int64_t chunk_begin) {
    constexpr int kLanes = 8;
    if (!share.has(0)) return;
    const int lane = int(threadIdx.x) % kWarpSize;
    const int64_t begin = chunk_begin + share.first, end = chunk_begin + share.last;
    const auto begin_of = [&](int64_t row) { return int64_t(row_begin<I>(p.a, row)); };
    int64_t row = last_up_to(p.a.rows, begin, begin_of);
    for (bool has_more = true; has_more; row += kWarpSize) {
      const bool exists = row + lane < p.a.rows;
      const int64_t low = exists ? begin_of(row + lane) : end;
      const int64_t high = exists ? begin_of(row + lane + 1) : end;
      const int first = int((low < begin ? begin : low < end ? low : end) - begin);
      const int last = int((high < end ? high : end) - begin);
#pragma unroll
      for (int r = 0; r < kWarpSize; r += kWarpSize / kLanes) {
        const int source = r + lane / kLanes;
        const int from = __shfl_sync(kFullWarp, first, source);
        const int to = __shfl_sync(kFullWarp, last, source);
        for (int i = from + lane % kLanes; i < to; i += kLanes)
          shared.rows[share.first + i] = uint32_t(row + source);
      }
      has_more = warp_broadcast(high, kWarpSize - 1) < end;
    }
    __syncwarp();
  }

  TC_DEVICE void take_rows() {
    const uint32_t mask = (1u << p.low_bits) - 1;
#pragma unroll
    for (int i = 0; i < each; ++i)
      if (share.at(i) < share.last)
        words[i] = shared.rows[share.at(i)] << p.low_bits | (words[i] & mask);
  }

  TC_DEVICE void place(int64_t begin) {
    constexpr int kAhead = 8;
    if (!share.has(0)) return;
    const T* const data = static_cast<const T*>(p.a.data) + begin * p.a.data_stride;
#pragma unroll
    for (int ahead = 0; ahead < each; ahead += kAhead) {
      T values[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) values[i] = data[near(ahead + i) * p.a.data_stride];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const uint32_t key = keys[ahead + i];
        if (key == none) continue;
        const uint32_t at = shared.places.place(int(key % kMostKeys), key / kMostKeys);
        shared.elements[at] = {words[ahead + i], values[i]};
      }
    }
  }
};

struct BucketChunks {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    auto& shared = dynamic_shared<BucketShared<C>>();
    static_assert(sizeof(shared) <= bucket_shared_bytes(C));
    const Chunk<I> chunk(p);
    const int size = chunk.begin < chunk.end ? int(chunk.end - chunk.begin) : 0;
    ChunkThread<T, C> thread{p, shared, WarpShare<C>(size)};
    thread.template load_columns<I>(chunk.begin);
    shared.places.clear(p.buckets);
    thread.template list_rows<I>(chunk.begin);
    __syncthreads();
    thread.rank();
    thread.take_rows();
    __syncthreads();
    shared.places.scan(p.buckets);
    thread.place(chunk.begin);
    __syncthreads();
    Carried* const to = carried_elements(p) + int64_t(blockIdx.x) * p.chunk;
    const int kept = int(shared.places.begin[p.buckets]);
    for (int i = int(threadIdx.x); i < kept; i += C.threads) to[i] = shared.elements[i];
    for (int bucket = int(threadIdx.x); bucket <= p.buckets; bucket += C.threads)
      run_places(p, bucket)[blockIdx.x] = uint16_t(shared.places.begin[bucket]);
  }
};

}  // namespace tensorcraft::kernel::csr

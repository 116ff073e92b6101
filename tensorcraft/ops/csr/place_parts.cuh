// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block has a part of a bucket: it gathers the runs of chunks, sorts them by column in shared
// memory, and writes what is neighbours there to neighbours.
#include "tensorcraft/ops/csr/buckets.cuh"
#include "tensorcraft/ops/csr/left_out.cuh"

namespace tensorcraft::kernel::csr {

template <class T, class I, Config C>
struct PartBlock {
  static constexpr int each = kElementsOfThread;

  const Params& p;
  BucketShared<C>& shared;
  const Part& part;
  const int columns;  // of the bucket

  TC_DEVICE PartBlock(const Params& params, BucketShared<C>& memory)
      : p(params), shared(memory), part(memory.part), columns(1 << params.low_bits) {}

  // Sorts those elements by columns. Call it between barriers.
  TC_DEVICE void sort() {
    const WarpShare<C> share(part.size);
    Carried own[each];
    uint32_t ranks[each / 2] = {};  // two in a word
#pragma unroll
    for (int i = 0; i < each; ++i) {
      if (!share.has(i)) continue;
      const int at = share.at(i);
      const int key = at < share.last ? int(shared.elements[at].word) & (columns - 1) : -1;
      const uint32_t same = lanes_of_key(key, p.low_bits);
      ranks[i / 2] |= shared.places.rank(key, same) << i % 2 * 16;
    }
    __syncthreads();
    shared.places.scan(columns);
#pragma unroll
    for (int i = 0; i < each; ++i)
      if (share.at(i) < share.last) own[i] = shared.elements[share.at(i)];
    __syncthreads();  // all are read
#pragma unroll
    for (int i = 0; i < each; ++i) {
      if (share.at(i) >= share.last) continue;
      const int key = int(own[i].word) & (columns - 1);
      const uint32_t rank = ranks[i / 2] >> i % 2 * 16 & 0xffff;
      shared.elements[shared.places.place(key, rank)] = own[i];
    }
    __syncthreads();
  }

  // Counts the elements of a column in other parts: in front of this one, and all.
  TC_DEVICE void count(int column, uint32_t& before, uint32_t& all) const {
    const int64_t first = part.number - part.index, parts = parts_of<C>(part.elements);
    before = all = 0;
#pragma unroll 8
    for (int64_t i = 0; i < parts; ++i) {
      const uint32_t own = part_counts(p, first + i)[column];
      before += i < part.index ? own : 0;
      all += own;
    }
  }

  // How far behind its place in shared memory a column's element goes. Ends with a barrier.
  TC_DEVICE void begin_columns() {
    const int64_t first_column = int64_t(part.bucket) << p.low_bits;
    int64_t at = part.begin;
    for (int turn = 0; turn < columns; turn += C.threads) {
      const int c = turn + int(threadIdx.x);
      uint32_t before = 0, all = 0, own = 0;
      if (c < columns) {
        own = shared.places.begin[c];
        all = shared.places.begin[c + 1] - own;
        if (!part.is_bucket()) count(c, before, all);
      }
      const int64_t begin = sum_in_front<C.threads>(shared.sums, int64_t(all), at);
      if (c >= columns) continue;
      shared.column_begins[c] = uint32_t(begin) + before - own;
      if (part.index == 0 && first_column + c < p.a.cols)
        element_of<I>(p.indptr, first_column + c) = I(begin);
    }
    if (part.index == 0 && part.bucket == p.buckets - 1 && threadIdx.x == 0)
      element_of<I>(p.indptr, p.a.cols) = I(at);
    __syncthreads();
  }

  TC_DEVICE void write() const {
    for (int i = int(threadIdx.x); i < part.size; i += C.threads) {
      const Carried own = shared.elements[i];
      const int column = int(own.word) & (columns - 1);
      const int64_t at = uint32_t(shared.column_begins[column] + uint32_t(i));
      element_of<T>(p.data, at) = T(own.value);
      element_of<I>(p.indices, at) = I(own.word >> p.low_bits);
    }
  }
};

struct PlaceParts {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    auto& shared = dynamic_shared<BucketShared<C>>();
    const AllParts all = find_part<C>(p, blockIdx.x, shared.sums, shared.part);
    if (PartBlock<T, I, C> block(p, shared); block.part.bucket >= 0) {
      shared.places.clear(block.columns);
      gather<C>(p, block.part, shared.chunks, shared.elements);
      block.sort();
      block.begin_columns();
      block.write();
    }
    clear_left_out<T, I, C>(p, all.elements, blockIdx.x, gridDim.x);
  }
};

}  // namespace tensorcraft::kernel::csr

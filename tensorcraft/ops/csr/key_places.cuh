// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block sorts elements in shared memory by a key of up to 10 bits: each warp has neighbouring
// ones, and counts for itself. A sum over keys and warps says where those of a warp begin, so equal
// keys stay in their order.
#include "tensorcraft/device/bits.cuh"
#include "tensorcraft/device/scan.cuh"
#include "tensorcraft/ops/csr/params.h"

namespace tensorcraft::kernel::csr {

// An element on its way: its row, and in the low bits its column within the bucket. A value of 2
// bytes is widened, so that a block leaves no byte unwritten.
struct alignas(kCarriedBytes) Carried {
  uint32_t word;
  int32_t value;
};

// The lanes whose key has the same bit.
TC_DEVICE uint32_t lanes_of_bit(int key, int bit) {
  const bool is_set = (key >> bit & 1) != 0;
  const uint32_t set = __ballot_sync(kFullWarp, is_set);
  return is_set ? set : ~set;
}
// The lanes that have the same key of up to so many bits; -1 is a key of its own.
TC_DEVICE uint32_t lanes_of_key(int key, int bits) {
  constexpr int kFew = 5;
  uint32_t same = kFullWarp;
#pragma unroll
  for (int bit = 0; bit <= kFew; ++bit) same &= lanes_of_bit(key, bit);
  if (bits > kFew) {
#pragma unroll
    for (int bit = kFew + 1; bit <= kMostKeyBits; ++bit) same &= lanes_of_bit(key, bit);
  }
  return same;
}

// Places of a block's elements by key.
template <Config C, int kKeys>
struct KeyPlaces {
  static constexpr int warps = C.threads / kWarpSize;

  uint16_t next[warps][kKeys];  // of a warp's elements; counts before scan()
  uint32_t begin[kKeys + 1];    // of all
  BlockScan<uint32_t> sums;

  TC_DEVICE void clear(int keys) {
    for (int key = int(threadIdx.x); key < keys; key += C.threads)
      for (auto& own : next) own[key] = 0;
  }
  // Which of the warp's elements of the key a lane's is; -1 is no key. `same`: the lanes that have
  // the key too. All lanes call.
  TC_DEVICE uint32_t rank(int key, uint32_t same) {
    const int lane = int(threadIdx.x) % kWarpSize;
    uint16_t* const own = next[threadIdx.x / kWarpSize];
    const uint32_t first = key >= 0 ? own[key] : 0;
    const uint32_t rank = count_bits(same & ((1u << lane) - 1));
    __syncwarp();
    if (key >= 0 && rank == 0) own[key] = uint16_t(first + count_bits(same));
    __syncwarp();
    return first + rank;
  }
  // Serves where no other lane has the key.
  TC_DEVICE uint32_t rank(int key) {
    uint16_t* const own = next[threadIdx.x / kWarpSize];
    const uint32_t rank = key >= 0 ? own[key] : 0;
    if (key >= 0) own[key] = uint16_t(rank + 1);
    __syncwarp();
    return rank;
  }
  // Between barriers, of which it ends with one.
  TC_DEVICE void scan(int keys) {
    uint32_t all = 0;
    for (int turn = 0; turn < keys; turn += C.threads) {
      const int key = turn + int(threadIdx.x);
      uint32_t count = 0;
      if (key < keys)
        for (const auto& own : next) count += own[key];
      uint32_t at = sum_in_front<C.threads>(sums, count, all);
      if (key >= keys) continue;
      begin[key] = at;
      for (auto& own : next) {
        const uint32_t those = own[key];
        own[key] = uint16_t(at);
        at += those;
      }
    }
    if (threadIdx.x == 0) begin[keys] = all;
    __syncthreads();
  }
  TC_DEVICE uint32_t place(int key, uint32_t rank) const {
    return next[threadIdx.x / kWarpSize][key] + rank;
  }
};

}  // namespace tensorcraft::kernel::csr

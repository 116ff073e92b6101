// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the row is read once, by a block. An element joins the candidates in shared memory
// only if it beats the k-th best so far, which after the first elements few do: about k ln(n / k)
// of n in random order. When the candidates could overflow they are sorted and all but k go. The
// order in which threads append changes nothing, since no two keys are equal.
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/topk/key.cuh"

namespace tensorcraft::kernel::topk {

inline constexpr int kCandidates = 2048;  // a power of two

struct Candidates {
  uint64_t keys[kCandidates];
  int32_t count;
};

// The largest first; all threads of the block call. A bitonic network over the next power of two.
template <Config C>
TC_DEVICE void sort(Candidates& c) {
  int size = 2;
  while (size < c.count) size *= 2;
  for (int i = int(threadIdx.x) + c.count; i < size; i += C.threads) c.keys[i] = 0;
  for (int width = 2; width <= size; width *= 2)
    for (int apart = width / 2; apart > 0; apart /= 2) {
      __syncthreads();
      for (int pair = int(threadIdx.x); pair < size / 2; pair += C.threads) {
        const int a = 2 * pair - (pair & (apart - 1)), b = a + apart;
        const uint64_t first = c.keys[a], second = c.keys[b];
        const bool is_descending = (a & width) == 0;
        if ((first < second) != is_descending) continue;
        c.keys[a] = second;
        c.keys[b] = first;
      }
    }
  __syncthreads();
}

struct Block {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int kTile = kCandidates / 2, kLoads = kTile / C.threads;
    auto& c = static_shared<Candidates>();
    const Row<T, C> r(p, blockIdx.x);
    const int k = int(p.k);
    if (threadIdx.x == 0) c.count = 0;
    __syncthreads();
    uint64_t kth = 0;
    for (int64_t first = 0; first < p.cols; first += kTile) {
      uint64_t keys[kLoads];
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        const int64_t at = first + i * C.threads + threadIdx.x;
        keys[i] = at < p.cols ? r.key(at) : 0;
      }
#pragma unroll
      for (int i = 0; i < kLoads; ++i)
        if (keys[i] > kth) c.keys[atomic_add(&c.count, 1)] = keys[i];
      __syncthreads();
      const bool is_full = c.count > kCandidates - kTile;
      if (is_full || first == 0) {
        sort<C>(c);
        const int count = c.count;
        kth = count >= k ? c.keys[k - 1] : 0;
        __syncthreads();  // all threads have read the count
        if (threadIdx.x == 0 && count > k) c.count = k;
      }
      __syncthreads();
    }
    sort<C>(c);
    for (int place = int(threadIdx.x); place < k; place += C.threads) r.store(place, c.keys[place]);
  }
};

}  // namespace tensorcraft::kernel::topk

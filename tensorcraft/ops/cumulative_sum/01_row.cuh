// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a block shares a row, tile by tile: each thread sums its neighbours, shuffles scan
// the warp, shared memory the warps, and the total is carried on. The next tile is on its way while
// one is summed. Few long rows are cut into segments, a block each: a block sums its segment, waits
// for the sums of those before, and sums again with what they add up to: 3 transfers instead of 2,
// but by the whole GPU. Tickets say which segment is whose, so those before have always started;
// the order of all additions is fixed, so results repeat to the bit.
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/device/ptx/memory_order.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/cumulative_sum/sums.cuh"

namespace tensorcraft::kernel::cumulative_sum {

template <class Value>
struct RowShared {
  BlockReduce<Value> scratch;
  Value warps[2][kMaxWarps];  // two in turn: one barrier a tile
  uint32_t ticket;
};

// What a thread has of a tile, elements behind `end` are 0.
template <class T, Config C>
TC_DEVICE AlignedVector<T, C.vector> load_own(const Params& p, const T* x, int64_t at,
                                              int64_t end) {
  AlignedVector<T, C.vector> v;
  if constexpr (C.wide)
    if (at + C.vector <= end) return load_vector<C.vector>(x + at);
  for (int e = 0; e < C.vector; ++e) v[e] = at + e < end ? x[(at + e) * p.x_step] : T(0);
  return v;
}

template <class T, Config C>
TC_DEVICE typename Sums<T>::Value sum_segment(const Params& p,
                                              BlockReduce<typename Sums<T>::Value>& scratch,
                                              const T* x, int64_t begin, int64_t end) {
  constexpr int kTile = C.threads * C.vector;
  typename Sums<T>::Value sum = 0;
  for (int64_t at = begin + threadIdx.x * C.vector; at < end; at += kTile) {
    const auto v = load_own<T, C>(p, x, at, end);
    for (int e = 0; e < C.vector; ++e) sum += value_of(v[e]);
  }
  return block_sum(scratch, sum);
}

// The sum of what lies in front of a segment; makes its own sum known.
template <class T, Config C>
TC_DEVICE typename Sums<T>::Value sum_before(const Params& p,
                                             BlockReduce<typename Sums<T>::Value>& scratch,
                                             const T* x, int64_t unit, int64_t begin, int64_t end) {
  using Value = typename Sums<T>::Value;
  uint32_t* const flags = static_cast<uint32_t*>(p.workspace) + 1;
  Value* const sums = reinterpret_cast<Value*>(static_cast<uint8_t*>(p.workspace) + p.sums);
  const int64_t segment = unit % p.segments;
  if (segment + 1 < p.segments) {
    const Value own = sum_segment<T, C>(p, scratch, x, begin, end);
    if (threadIdx.x == 0) {
      sums[unit] = own;
      ptx::st_release_gpu_u32(flags + unit, 1);
    }
  }
  Value before = 0;
  for (int64_t i = unit - segment + threadIdx.x; i < unit; i += C.threads) {
    while (ptx::ld_acquire_gpu_u32(flags + i) == 0) {
    }
    before += sums[i];
  }
  return block_sum(scratch, before);
}

struct Row {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    using Value = typename Sums<T>::Value;
    using Out = typename Sums<T>::Out;
    constexpr int kTile = C.threads * C.vector, kWarps = C.threads / kWarpSize;
    auto& shared = static_shared<RowShared<Value>>();
    int64_t unit = blockIdx.x;
    if (p.segments > 1) {
      if (threadIdx.x == 0) shared.ticket = atomic_add(static_cast<uint32_t*>(p.workspace), 1u);
      __syncthreads();
      unit = shared.ticket;
    }
    const int64_t row = unit / p.segments, begin = unit % p.segments * p.segment_cols;
    const int64_t end = begin + p.segment_cols < p.cols ? begin + p.segment_cols : p.cols;
    const T* x = row_of_x<T, C>(p, row);
    const OutRow<T, C> out(p, row);
    if (p.initial && begin == 0 && threadIdx.x == 0) out.store(p, -p.out_step, 0);
    Value carry = 0;
    if (p.segments > 1) carry = sum_before<T, C>(p, shared.scratch, x, unit, begin, end);

    const int lane = int(threadIdx.x) % kWarpSize, warp = int(threadIdx.x) / kWarpSize;
    int64_t at = begin + threadIdx.x * C.vector;
    auto next = load_own<T, C>(p, x, at, end);
    for (int turn = 0; at - int(threadIdx.x) * C.vector < end; turn ^= 1, at += kTile) {
      Value sums[C.vector];
      sums[0] = value_of(next[0]);
      for (int e = 1; e < C.vector; ++e) sums[e] = sums[e - 1] + value_of(next[e]);
      next = load_own<T, C>(p, x, at + kTile, end);
      Value through = sums[C.vector - 1];  // of the warp's lanes up to this one
      for (int lanes = 1; lanes < kWarpSize; lanes *= 2) {
        const Value other = __shfl_up_sync(kFullWarp, through, lanes);
        if (lane >= lanes) through += other;
      }
      Value before = __shfl_up_sync(kFullWarp, through, 1);
      if (lane == 0) before = 0;
      if (lane == kWarpSize - 1) shared.warps[turn][warp] = through;
      __syncthreads();
      Value front = carry;
      for (int w = 0; w < kWarps; ++w) {
        if (w == warp) front = carry;
        carry += shared.warps[turn][w];
      }
      before += front;
      if constexpr (C.wide && !C.converts && sizeof(Out) * C.vector == kVectorBytes) {
        if (at + C.vector <= end) {
          AlignedVector<Out, C.vector> v;
          for (int e = 0; e < C.vector; ++e) v[e] = Out(before + sums[e]);
          store_vector(out.own + at, v);
          continue;
        }
      }
      for (int e = 0; e < C.vector; ++e)
        if (at + e < end) out.store(p, (at + e) * p.out_step, before + sums[e]);
    }
  }
};

}  // namespace tensorcraft::kernel::cumulative_sum

// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a block shares a row, tile by tile: each thread sums its neighbours, shuffles scan
// the warp, shared memory the warps, and the total is carried on. The next tile is on its way while
// one is summed. Few long rows are cut into segments, a block each: a block sums its segment, waits
// for the sums of those before, and sums again with what they add up to: 3 transfers instead of 2,
// but by the whole GPU. Tickets say which segment is whose, so those before have always started;
// the order of all additions is fixed, so results repeat to the bit. Products of floats are not
// scanned: the block brings a tile to shared memory, where one thread multiplies from the left.
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/device/ptx/memory_order.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/cumulative_sum/sums.cuh"

namespace tensorcraft::kernel::cumulative_sum {

template <class Value>
struct RowShared {
  BlockReduce<Value> scratch;
  Value warps[2][kMaxWarps];  // two in turn: one barrier a tile
  uint32_t ticket;
};

// The elements of a tile that a thread has; elements behind `end` change nothing.
template <class T, Config C>
TC_DEVICE AlignedVector<T, C.vector> load_own(const Params& p, const T* x, int64_t at,
                                              int64_t end) {
  AlignedVector<T, C.vector> v;
  if constexpr (C.wide)
    if (at + C.vector <= end) return load_vector<C.vector>(x + at);
  for (int e = 0; e < C.vector; ++e)
    v[e] = at + e < end ? x[(at + e) * p.x_step] : T(Join<C>::template identity<float>());
  return v;
}

template <class T, Config C>
using TotalOf = typename Sums<T, C.operation>::Value;

template <class T, Config C>
TC_DEVICE TotalOf<T, C> sum_segment(const Params& p, BlockReduce<TotalOf<T, C>>& scratch,
                                    const T* x, int64_t begin, int64_t end) {
  constexpr int kTile = C.threads * C.vector;
  const Join<C> join;
  Chain<T, C.operation> sum;
  for (int64_t at = begin + threadIdx.x * C.vector; at < end; at += kTile) {
    const auto v = load_own<T, C>(p, x, at, end);
    auto own = value_of<C>(p, v[0]);
    for (int e = 1; e < C.vector; ++e) own = join(own, value_of<C>(p, v[e]));
    sum.add(own);
  }
  return block_reduce(scratch, sum.value(), join);
}

// The sum of what lies in front of a segment; makes its own sum known.
template <class T, Config C>
TC_DEVICE TotalOf<T, C> sum_before(const Params& p, BlockReduce<TotalOf<T, C>>& scratch, const T* x,
                                   int64_t unit, int64_t begin, int64_t end) {
  const Join<C> join;
  uint32_t* const flags = static_cast<uint32_t*>(p.workspace) + 1;
  auto* const sums = reinterpret_cast<TotalOf<T, C>*>(static_cast<uint8_t*>(p.workspace) + p.sums);
  const int64_t segment = unit % p.segments;
  if (segment + 1 < p.segments) {
    const TotalOf<T, C> own = sum_segment<T, C>(p, scratch, x, begin, end);
    if (threadIdx.x == 0) {
      sums[unit] = own;
      ptx::st_release_gpu_u32(flags + unit, 1);
    }
  }
  auto before = Join<C>::template identity<TotalOf<T, C>>();
  for (int64_t i = unit - segment + threadIdx.x; i < unit; i += C.threads) {
    while (ptx::ld_acquire_gpu_u32(flags + i) == 0) {
    }
    before = join(before, sums[i]);
  }
  return block_reduce(scratch, before, join);
}

// A thread's elements of a row of out from `at` on; value(e) is the e-th of them.
template <class T, Config C, class F>
TC_DEVICE void store_own(const Params& p, const OutRow<T, C>& out, int64_t at, int64_t end,
                         F value) {
  using Out = typename OutRow<T, C>::Out;
  if constexpr (C.wide && !C.converts && sizeof(Out) * C.vector == kVectorBytes) {
    if (at + C.vector <= end) {
      AlignedVector<Out, C.vector> v;
      for (int e = 0; e < C.vector; ++e) v[e] = Out(value(e));
      return store_vector(out.own + at, v);
    }
  }
  for (int e = 0; e < C.vector; ++e)
    if (at + e < end) out.store(p, (at + e) * p.out_step, value(e));
}

template <Config C>
struct ProductShared {
  float tile[C.threads * C.vector];
};

// One thread multiplies all elements of a row in their order, at the speed of a multiplication
// after the other; the others load and store. A thread overwrites no element of `tile` but its own,
// so a tile takes two barriers.
template <class T, Config C>
TC_DEVICE void multiply_from_left(const Params& p) {
  constexpr int kTile = C.threads * C.vector, kAtOnce = 8;  // reads of shared memory in flight
  static_assert(kTile % kAtOnce == 0);
  auto& shared = static_shared<ProductShared<C>>();
  const int64_t row = blockIdx.x;
  const T* x = row_of_x<T, C>(p, row);
  const OutRow<T, C> out(p, row);
  if (p.initial && threadIdx.x == 0) out.store_initial(p);
  float* const own = shared.tile + threadIdx.x * C.vector;
  float product = 1;
  int64_t at = threadIdx.x * C.vector;
  auto next = load_own<T, C>(p, x, at, p.cols);
  for (int64_t first = 0; first < p.cols; first += kTile, at += kTile) {
    for (int e = 0; e < C.vector; ++e) own[e] = value_of<C>(p, next[e]);
    next = load_own<T, C>(p, x, at + kTile, p.cols);
    __syncthreads();
    if (threadIdx.x == 0) {
      const int count = int(p.cols - first < kTile ? p.cols - first : kTile);
#pragma unroll 1
      for (int i = 0; i < count; i += kAtOnce) {
        float v[kAtOnce];
#pragma unroll
        for (int u = 0; u < kAtOnce; ++u) v[u] = shared.tile[i + u];
#pragma unroll
        for (int u = 0; u < kAtOnce; ++u) shared.tile[i + u] = product *= v[u];
      }
    }
    __syncthreads();
    store_own<T, C>(p, out, at, p.cols, [own](int e) { return own[e]; });
  }
}

struct Row {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    if constexpr (Sums<T, C.operation>::kFromLeft)
      multiply_from_left<T, C>(p);
    else
      scan<T, C>(p);
  }

 private:
  template <class T, Config C>
  TC_DEVICE static void scan(const Params& p) {
    using Value = TotalOf<T, C>;
    constexpr int kTile = C.threads * C.vector, kWarps = C.threads / kWarpSize;
    constexpr auto kNothing = C.operation == Operation::sum ? Value(0) : Value(1);
    const Join<C> join;
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
    if (p.initial && begin == 0 && threadIdx.x == 0) out.store_initial(p);
    Chain<T, C.operation> carry;  // of all tiles before
    if (p.segments > 1) carry.add(sum_before<T, C>(p, shared.scratch, x, unit, begin, end));

    const int lane = int(threadIdx.x) % kWarpSize, warp = int(threadIdx.x) / kWarpSize;
    int64_t at = begin + threadIdx.x * C.vector;
    auto next = load_own<T, C>(p, x, at, end);
    for (int turn = 0; at - int(threadIdx.x) * C.vector < end; turn ^= 1, at += kTile) {
      Value sums[C.vector];
      sums[0] = value_of<C>(p, next[0]);
      for (int e = 1; e < C.vector; ++e) sums[e] = join(sums[e - 1], value_of<C>(p, next[e]));
      next = load_own<T, C>(p, x, at + kTile, end);
      Value through = sums[C.vector - 1];  // of the warp's lanes up to this one
      for (int lanes = 1; lanes < kWarpSize; lanes *= 2) {
        const Value other = __shfl_up_sync(kFullWarp, through, lanes);
        if (lane >= lanes) through = join(through, other);
      }
      Value before = __shfl_up_sync(kFullWarp, through, 1);
      if (lane == 0) before = kNothing;
      if (lane == kWarpSize - 1) shared.warps[turn][warp] = through;
      __syncthreads();
      Value tile = kNothing, front = kNothing;
      for (int w = 0; w < kWarps; ++w) {
        if (w == warp) front = tile;
        tile = join(tile, shared.warps[turn][w]);
      }
      before = join(carry.value(), join(front, before));
      carry.add(tile);
      store_own<T, C>(p, out, at, end, [&](int e) { return join(before, sums[e]); });
    }
  }
};

}  // namespace tensorcraft::kernel::cumulative_sum

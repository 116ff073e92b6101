// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/shared.cuh"

namespace tensorcraft {

inline constexpr int kWarpSize = 32;
inline constexpr int kMaxWarps = 32;  // a block has at most 1024 threads
inline constexpr unsigned kFullWarp = 0xffffffffu;

// A function that calls templates is a template here: a compiler instantiates what others call,
// also for kernels that call none of them, 1 ms of each.

// The operations of a reduction, with the value that changes nothing.
struct Sum {
  template <class T>
  TC_DEVICE static T identity() {
    return T(0);
  }
  template <class T>
  TC_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};
// NaN survives.
struct Max {
  template <class T>
  TC_DEVICE static T identity() {
    static_assert(sizeof(T) == 4 && T(0.5f) != T(0), "Max reduces float");
    return -kInfinity;
  }
  TC_DEVICE float operator()(float a, float b) const { return fmax_nan(a, b); }
};

TC_DEVICE int thread_rank() {
  return int(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}
TC_DEVICE int block_threads() { return int(blockDim.x * blockDim.y * blockDim.z); }

// The reduction of a thread's own values, a power of two, which are lost: neighbours first, so that
// few operations wait for one another.
template <int kCount, class Op>
TC_DEVICE float in_pairs(float (&v)[kCount], Op op) {
  static_assert((kCount & (kCount - 1)) == 0);
  for (int step = 1; step < kCount; step *= 2)
    for (int i = 0; i < kCount; i += 2 * step) v[i] = op(v[i], v[i + step]);
  return v[0];
}

// Every lane gets the reduction over its group of `width` neighbouring lanes (the whole warp by
// default), bitwise the same in each. All 32 lanes must call.
template <int width = kWarpSize, class T, class Op>
TC_DEVICE T warp_reduce(T v, Op op) {
  static_assert(width > 0 && width <= kWarpSize && (width & (width - 1)) == 0);
  for (int lanes = width / 2; lanes > 0; lanes /= 2)
    v = op(v, __shfl_xor_sync(kFullWarp, v, lanes));
  return v;
}
template <class T>
TC_DEVICE T warp_sum(T v) {
  return warp_reduce(v, Sum());
}
template <class T>
TC_DEVICE T warp_max(T v) {
  static_assert(sizeof(T) == 4 && T(0.5f) != T(0), "Max reduces float");
  return warp_reduce(v, Max());
}

// Only lane 0 has the result.
template <class T, class Op>
TC_DEVICE T warp_reduce_down(T v, Op op) {
  for (int lanes = kWarpSize / 2; lanes > 0; lanes /= 2)
    v = op(v, __shfl_down_sync(kFullWarp, v, lanes));
  return v;
}

// The struct of words that the lane has whose number differs in the bits of `lanes`.
template <class Part>
TC_DEVICE Part warp_exchange(const Part& own, int lanes) {
  struct Words {
    uint32_t values[sizeof(Part) / 4];
  };
  auto words = bit_cast<Words>(own);
  for (uint32_t& word : words.values) word = __shfl_xor_sync(kFullWarp, word, lanes);
  return bit_cast<Part>(words);
}

// The value of one lane of each group of `width` neighbours.
template <int width = kWarpSize, class T>
TC_DEVICE T warp_broadcast(T v, int lane = 0) {
  return __shfl_sync(kFullWarp, v, lane, width);
}
TC_DEVICE bool warp_all(bool predicate) { return __all_sync(kFullWarp, predicate) != 0; }
TC_DEVICE bool warp_any(bool predicate) { return __any_sync(kFullWarp, predicate) != 0; }

// Part of the kernel's shared struct; one serves any number of reductions in turn.
template <class T>
struct BlockReduce {
  T parts[kMaxWarps];
};

// Every thread gets the reduction over the block. The block is whole warps, at most 1024 threads,
// and all of them call. `shared` serves this one reduction of the kernel.
template <class T, class Op>
TC_DEVICE T block_reduce_once(BlockReduce<T>& shared, T v, Op op) {
  const int lane = thread_rank() % kWarpSize, warp = thread_rank() / kWarpSize;
  v = warp_reduce(v, op);
  if (lane == 0) shared.parts[warp] = v;
  __syncthreads();
  v = lane < block_threads() / kWarpSize ? shared.parts[lane] : Op::template identity<T>();
  return warp_reduce(v, op);
}
// Reduces with a barrier more, after which `shared` may serve again.
template <class T, class Op>
TC_DEVICE T block_reduce(BlockReduce<T>& shared, T v, Op op) {
  v = block_reduce_once(shared, v, op);
  __syncthreads();
  return v;
}
template <class T>
TC_DEVICE T block_sum(BlockReduce<T>& shared, T v) {
  return block_reduce(shared, v, Sum());
}
template <class T>
TC_DEVICE T block_max(BlockReduce<T>& shared, T v) {
  return block_reduce(shared, v, Max());
}

}  // namespace tensorcraft

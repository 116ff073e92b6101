// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/load.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/vec.cuh"

// A group of neighbouring threads that share a row: a power of two up to a warp, or the block.
namespace tensorcraft {

// Every thread gets the reduction over its group. All threads of the block call; a group larger
// than a warp is the block, and costs 2 barriers.
template <int group, class Op>
TC_DEVICE float group_reduce(BlockReduce<float>& shared, float v, Op op) {
  if constexpr (group <= kWarpSize)
    return warp_reduce<group>(v, op);
  else
    return block_reduce(shared, v, op);
}

// kCount neighbours as floats and back, in accesses of up to 16 bytes. The address is a multiple
// of 16 bytes, or of all kCount elements where they are fewer.
template <int kCount, class T>
TC_DEVICE void load_floats(float (&to)[kCount], const T* from) {
  constexpr int kStep = kCount < kVectorSize<T> ? kCount : kVectorSize<T>;
  for (int i = 0; i < kCount; i += kStep) {
    const auto part = load_vector<kStep>(from + i);
    for (int e = 0; e < kStep; ++e) to[i + e] = float(part[e]);
  }
}

// The same of what nothing writes while the kernel runs: these loads may pass stores.
template <int kCount, class T>
TC_DEVICE void load_constant_floats(float (&to)[kCount], const T* from) {
  if constexpr (kCount < kVectorSize<T>) {
    load_floats(to, from);
  } else {
    constexpr int kStep = kVectorSize<T>;
    for (int i = 0; i < kCount; i += kStep) {
      const auto part = bit_cast<AlignedVector<T, kStep>>(ptx::ld_global_nc_v4(from + i));
      for (int e = 0; e < kStep; ++e) to[i + e] = float(part[e]);
    }
  }
}

template <int kCount, class T>
TC_DEVICE void store_floats(T* to, const float (&from)[kCount]) {
  constexpr int kStep = kCount < kVectorSize<T> ? kCount : kVectorSize<T>;
  for (int i = 0; i < kCount; i += kStep) {
    AlignedVector<T, kStep> part;
    for (int e = 0; e < kStep; ++e) part[e] = T(from[i + e]);
    store_vector(to + i, part);
  }
}

// The part of a row that one thread of a group holds: `slots` accesses of `vector` neighbours, the
// group's own next to each other. C is a Config with threads, group, vector, slots, and `whole`:
// the slots of a group are the row exactly, so that nothing lies behind its end.
template <auto C>
struct RowSlots {
  static constexpr int kStep = C.group * C.vector;
  float h[C.slots][C.vector];
  int cols;

  TC_DEVICE static int column(int slot) {
    return int(threadIdx.x % C.group) * C.vector + slot * kStep;
  }
  TC_DEVICE bool has(int slot) const {
    if constexpr (C.whole) return true;
    return column(slot) < cols;
  }

  // x, or x + residual where that is not null. What lies behind the row is 0. All loads are issued
  // before the first is used.
  template <bool has_residual, class T>
  TC_DEVICE void load(const T* x, const T* residual, int columns) {
    cols = columns;
    AlignedVector<T, C.vector> a[C.slots], b[C.slots];
#pragma unroll
    for (int s = 0; s < C.slots; ++s) {
      if constexpr (!C.whole) a[s] = b[s] = {};
      if (!has(s)) continue;
      a[s] = load_vector<C.vector>(x + column(s));
      if constexpr (has_residual) b[s] = load_vector<C.vector>(residual + column(s));
    }
#pragma unroll
    for (int s = 0; s < C.slots; ++s)
      for (int e = 0; e < C.vector; ++e) {
        h[s][e] = float(a[s][e]);
        if constexpr (has_residual) h[s][e] += float(b[s][e]);
      }
  }

  // The sum of f(h) over the row, by slots first, so that their additions do not wait in one chain.
  template <class F>
  TC_DEVICE float sum(BlockReduce<float>& scratch, F f) const {
    float total = 0;
#pragma unroll
    for (int s = 0; s < C.slots; ++s) {
      if (!has(s)) continue;
      float part = f(h[s][0]);
      for (int e = 1; e < C.vector; ++e) part += f(h[s][e]);
      total += part;
    }
    return group_reduce<C.group>(scratch, total, Sum());
  }
};

}  // namespace tensorcraft

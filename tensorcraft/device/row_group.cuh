// SPDX-License-Identifier: Apache-2.0
#pragma once
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

template <int kCount, class T>
TC_DEVICE void store_floats(T* to, const float (&from)[kCount]) {
  constexpr int kStep = kCount < kVectorSize<T> ? kCount : kVectorSize<T>;
  for (int i = 0; i < kCount; i += kStep) {
    AlignedVector<T, kStep> part;
    for (int e = 0; e < kStep; ++e) part[e] = T(from[i + e]);
    store_vector(to + i, part);
  }
}

}  // namespace tensorcraft

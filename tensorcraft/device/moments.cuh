// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/reduce.cuh"

namespace tensorcraft {

// Some values: how many, their mean, and their squares about it. Two such parts of n and m values,
// means d apart, join as q + r + d^2 n m / (n + m), so no two large sums are subtracted. {} is
// the part without values.
struct Moments {
  float count, mean, squares;

  TC_DEVICE void join(const Moments& other) {
    if (other.count == 0) return;
    const float both = count + other.count, share = other.count / both;
    const float apart = other.mean - mean;
    mean += apart * share;
    squares += other.squares + apart * apart * (count * share);
    count = both;
  }

  // Of some accesses those that are `present`, at least one.
  template <int kAccesses, int kCount>
  TC_DEVICE void add(const float (&values)[kAccesses][kCount], const bool (&present)[kAccesses]) {
    Moments part{};
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) {
      if (!present[i]) continue;
      part.count += kCount;
      for (int e = 0; e < kCount; ++e) part.mean += values[i][e];
    }
    part.mean /= part.count;
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) {
      if (!present[i]) continue;
      for (int e = 0; e < kCount; ++e) {
        const float d = values[i][e] - part.mean;
        part.squares += d * d;
      }
    }
    join(part);
  }
};

// Every thread gets those of the whole block, joined in an order that never changes. All threads
// call.
TC_DEVICE Moments block_moments(BlockReduce<float>& scratch, const Moments& own) {
  Moments all{};
  all.count = block_sum(scratch, own.count);
  if (all.count == 0) return all;
  all.mean = block_sum(scratch, own.count * own.mean) / all.count;
  const float apart = own.mean - all.mean;
  all.squares = block_sum(scratch, own.squares + apart * apart * own.count);
  return all;
}

// A value to subtract before values like it are summed, so that a mean far above the deviation
// costs no digits; 0 where it is not finite, so that only sums decide what becomes of it.
TC_DEVICE float finite_or_zero(float x) { return x - x == 0.0f ? x : 0.0f; }

}  // namespace tensorcraft

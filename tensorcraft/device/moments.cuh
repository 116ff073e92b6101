// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/math.cuh"
#include "tensorcraft/device/row_group.cuh"

namespace tensorcraft {

// A value to subtract before values like it are summed, so that a mean far above the deviation
// costs no digits; 0 if it is not finite, so that only the sums decide what becomes of it.
TC_DEVICE float finite_or_zero(float x) { return x - x == 0.0f ? x : 0.0f; }

// Some values: how many, their mean, and their squares about it. Two such parts of n and m values,
// means d apart, join as q + r + d^2 n m / (n + m), so no two large sums are subtracted. {} is
// the part without values.
struct Moments {
  float count, mean, squares;

  TC_DEVICE static Moments of_nothing() { return {0, 0, 0}; }

  TC_DEVICE void join(const Moments& other) {
    if (other.count == 0) return;
    const float share = other.count * ptx::rcp_approx_ftz(count + other.count);
    const float apart = other.mean - mean;
    mean += apart * share;
    // Not apart * apart first, which may be infinite: that times a count of 0 is NaN.
    squares += other.squares + apart * (apart * (count * share));
    count += other.count;
  }

  TC_DEVICE void append(const Moments& other, int) { join(other); }

  // Every lane gets those of the parts of its group of `width` lanes. Means are added as
  // differences to the first lane's: equal ones join to the very same, whatever the sum of the
  // counts.
  template <int width = kWarpSize>
  TC_DEVICE Moments over_warp() const {
    Moments all{warp_reduce<width>(count, Sum()), 0, 0};
    const float inverse = all.count > 0 ? ptx::rcp_approx_ftz(all.count) : 0.0f;
    const float base = finite_or_zero(warp_broadcast<width>(mean));
    const float from_base = count > 0 ? mean - base : 0.0f;
    const float shift = warp_reduce<width>(count * from_base, Sum()) * inverse;
    const float apart = from_base - shift;
    all.mean = base + shift;
    all.squares = warp_reduce<width>(squares + apart * (apart * count), Sum());
    return all;
  }

  // Every thread gets those of its group, as group_reduce_once() does.
  template <int group>
  TC_DEVICE Moments over_group(BlockReduce<Moments>& shared) const {
    if constexpr (group <= kWarpSize)
      return over_warp<group>();
    else
      return part_of_warps<group>(shared, over_warp()).template over_warp<group / kWarpSize>();
  }
  TC_DEVICE float variance(float inverse_count) const { return squares * inverse_count; }

  // Moments of those accesses that are `present`, at least one.
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

// Moments of a walk of any length. Parts join a few before those join all, so that rounding grows
// with kFew and with the number of those.
struct LongMoments {
  static constexpr int kFew = 64;
  Moments all{}, few{};
  int parts = 0;

  template <int kAccesses, int kCount>
  TC_DEVICE void add(const float (&values)[kAccesses][kCount], const bool (&present)[kAccesses]) {
    few.add(values, present);
    if (++parts % kFew != 0) return;
    all.join(few);
    few = {};
  }
  TC_DEVICE Moments value() const {
    Moments sum = all;
    sum.join(few);
    return sum;
  }
};

// The sums of n values and of their squares, all less the first of them. As that is one of them,
// the squares about the mean are at least an n-th of these, so the difference that gives them makes
// the rounding of the sums n times as much at most, whatever the values; equal ones have that very
// mean and no deviation. A sum of differences beyond the largest float makes the mean infinite.
struct SumsAboutFirst {
  float first, sum, squares, count;

  // In chains of an access each, which do not wait for one another.
  template <int kCount>
  TC_DEVICE void add(const float (&values)[kCount]) {
    float part = 0, part_squares = 0;
    for (const float v : values) {
      const float d = v - first;
      part += d;
      part_squares += d * d;
    }
    sum += part;
    squares += part_squares;
    count += kCount;
  }
  // About the mean, which is `from_first` more than the first; infinite if a square was.
  TC_DEVICE float squares_about_mean(float from_first) const {
    return squares == kInfinity ? squares : squares - sum * from_first;
  }
};

// Moments of equally large parts: no counts are exchanged.
struct EvenMoments {
  float mean, var;

  // With d the distance between the means: (v + w) / 2 + (d / 2)^2. The same of both sides, bit for
  // bit, and equal means join to that very mean.
  TC_DEVICE void join(const EvenMoments& other) {
    const float half = 0.5f * mean, other_half = 0.5f * other.mean;
    const float apart = half - other_half;
    mean = half + other_half;
    var = fmaf(0.5f, var + other.var, apart * apart);
  }
  // Joins another to this one, which is of `parts` times as many values. Equal means stay what they
  // are.
  TC_DEVICE void append(const EvenMoments& other, int parts) {
    const float share = ptx::rcp_approx_ftz(float(parts + 1)), apart = other.mean - mean;
    mean += apart * share;
    var = (float(parts) * var + other.var + apart * (apart * (float(parts) * share))) * share;
  }
  template <int width = kWarpSize>
  TC_DEVICE EvenMoments over_warp() const {
    EvenMoments all = *this;
#pragma unroll 1
    for (int lanes = width / 2; lanes > 0; lanes /= 2) {
      EvenMoments other;
      other.mean = __shfl_xor_sync(kFullWarp, all.mean, lanes);
      other.var = __shfl_xor_sync(kFullWarp, all.var, lanes);
      all.join(other);
    }
    return all;
  }
  TC_DEVICE float variance(float) const { return var; }

  // Every thread gets those of its group, as Moments::over_group() does. Two sums, one after the
  // other, are half the instructions of joins.
  template <int group>
  TC_DEVICE EvenMoments over_group(BlockReduce<EvenMoments>& shared) const {
    if constexpr (group <= kWarpSize)
      return average<group>();
    else
      return part_of_warps<group>(shared, average<kWarpSize>())
          .template average<group / kWarpSize>();
  }

 private:
  // Divided first: a power of two changes no digit, and the sum is no larger than the means.
  template <int width>
  TC_DEVICE EvenMoments average() const {
    EvenMoments all;
    all.mean = warp_reduce<width>(mean * (1.0f / width), Sum());
    const float apart = mean - all.mean;
    all.var = warp_reduce<width>(fmaf(apart, apart, var) * (1.0f / width), Sum());
    return all;
  }
};

// Every thread gets those of the whole block, joined in an order that never changes. All threads
// call. One number after the other: more barriers than over_group(), and a quarter fewer registers.
template <class T>
TC_DEVICE Moments block_moments(BlockReduce<T>& scratch, const Moments& own) {
  Moments all{};
  all.count = block_sum(scratch, own.count);
  if (all.count == 0) return all;
  all.mean = block_sum(scratch, own.count * own.mean) / all.count;
  const float apart = own.mean - all.mean;
  all.squares = block_sum(scratch, own.squares + apart * (apart * own.count));
  return all;
}

}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/moments.cuh"
#include "tensorcraft/device/ptx/cluster.cuh"
#include "tensorcraft/device/scaled_row.h"

namespace tensorcraft {

// Whether squares of a dtype's values can be too large or too small for a float.
template <class T>
inline constexpr bool kHasExtremes = true;
template <>
inline constexpr bool kHasExtremes<f16> = false;

// Whether a row, of which this is 1 / sqrt(mean of squares), has to be walked again.
template <class T>
TC_DEVICE bool is_extreme(float rstd) {
  return kHasExtremes<T> && !is_ordinary_rstd(rstd);
}

// Sums of values times `scale`: their mean in two parts, pivot + shift, and their squares about it.
struct ScaledSums {
  float scale, pivot, shift, squares;
};

// Sums the values load(0) to load(count - 1), or the squares about 0. Each warp finds them
// alone, or each thread if the group is less than a warp, so different groups need not meet.
template <int group, bool has_mean, class Load>
TC_DEVICE ScaledSums scaled_sums(int64_t count, const Load& load) {
  constexpr int kLanes = group < kWarpSize ? 1 : kWarpSize;
  ScaledSums s{1, 0, 0, 0};
#pragma unroll 1
  for (int pass = 0; pass < 3; ++pass) {  // for the scale, the mean, the squares about it
    float largest = 0, sum = 0, squares = 0;
#pragma unroll 1
    for (int64_t i = threadIdx.x % kLanes; i < count; i += kLanes) {
      const float d = (load(i) * s.scale - s.pivot) - s.shift;
      largest = fmax_nan(largest, fabsf(d));
      sum += d;
      squares += d * d;
    }
    if (pass == 0) {
      s.scale = scale_of_row(warp_reduce<kLanes>(largest, Max()));
      if constexpr (has_mean) s.pivot = finite_or_zero(load(0)) * s.scale;
    } else if constexpr (has_mean) {
      s.shift += warp_reduce<kLanes>(sum, Sum()) / float(count);
    }
    s.squares = squares;
  }
  s.squares = warp_reduce<kLanes>(s.squares, Sum());
  return s;
}

// Which elements of an extreme row the calling thread stores, after all threads that share the row
// have walked over it: from `first` on, `step` apart; none if it is the group's first thread that
// does it alone.
struct Share {
  int64_t first, step;
};
template <int group, int cluster>
TC_DEVICE Share share_of_extreme(int64_t count) {
  if constexpr (group < kWarpSize) return {threadIdx.x % group == 0 ? 0 : count, 1};
  if constexpr (cluster > 1)
    ptx::cluster_sync();
  else if constexpr (group > kWarpSize)
    __syncthreads();
  else
    __syncwarp();
  const int64_t rank = cluster > 1 ? ptx::cluster_ctarank() : 0;
  return {rank * group + threadIdx.x % group, int64_t(cluster) * group};
}

// All of a row, scaled to length 1 or divided by eps if that is more, if it is extreme; returns
// whether. P has x_step, out_step, cols and eps; `unit`: both steps are 1.
template <class T, auto C, bool unit, class P>
TC_DEVICE bool store_extreme_unit(const P& p, float inverse_length, const T* x, T* out) {
  if (!is_extreme<T>(inverse_length)) return false;
  const auto load = [&](int64_t i) { return float(x[unit ? i : i * p.x_step]); };
  const ScaledSums s = scaled_sums<C.group, false>(p.cols, load);
  const float length = fmax_nan(sqrtf(s.squares), p.eps * s.scale);
  const auto [first, step] = share_of_extreme<C.group, C.cluster>(p.cols);
#pragma unroll 1
  for (int64_t i = first; i < p.cols; i += step)
    out[unit ? i : i * p.out_step] = T(load(i) * s.scale / length);
  return true;
}

}  // namespace tensorcraft

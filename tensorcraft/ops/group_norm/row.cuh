// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/moments.cuh"
#include "tensorcraft/device/row_group.cuh"
#include "tensorcraft/device/scaled_row.cuh"
#include "tensorcraft/ops/group_norm/params.h"

// What the rungs do with a row: statistics as two numbers, and its end.
namespace tensorcraft::kernel::group_norm {

// The mean in two parts, pivot + shift: values are summed as differences to the pivot.
struct Statistics {
  float pivot, shift, rstd;
};

template <class W>
TC_DEVICE float value_or(const void* values, int64_t channel, float otherwise) {
  return values ? float(static_cast<const W*>(values)[channel]) : otherwise;
}

// The end of a row's element: (h - mean) * scale + bias with those of its channel.
struct Affine {
  float scale, bias;
};
template <class W>
TC_DEVICE Affine affine(const Params& p, int64_t channel, const Statistics& s) {
  return {value_or<W>(p.weight, channel, 1) * s.rstd, value_or<W>(p.bias, channel, 0)};
}

TC_DEVICE int64_t first_channel(const Params& p, int64_t row) {
  return row % p.groups * p.group_channels;
}

// All of a row whose squares a float does not hold; any strides.
template <class T, class W, Config C>
TC_COLD void store_extreme_row(const Params& p, int64_t row) {
  const int64_t sample = row / p.groups, channel = first_channel(p, row);
  const T* x = static_cast<const T*>(p.x) + sample * p.x_batch + channel * p.x_channel;
  T* out = static_cast<T*>(p.out) + sample * p.out_batch + channel * p.out_channel;
  // Threads that share a row have dense tensors, of fewer than 2^31 elements a row.
  constexpr bool kDense = C.group > 1;
  using Index = Select<kDense, uint32_t, int64_t>;
  const auto spatial = Index(p.spatial);
  const auto load = [&](int64_t i) {
    if constexpr (kDense) return float(x[i]);
    return float(x[i / spatial * p.x_channel + p.x_spatial.offset<C.nested>(i % spatial)]);
  };
  const ScaledSums s = scaled_sums<C.group, true>(p.cols, load);
  const float rstd = rsqrtf(s.squares * p.inverse_cols + scaled_eps(p.eps, s.scale));
  const auto [first, step] = share_of_extreme<C.group, C.cluster>(p.cols);
#pragma unroll 1
  for (int64_t i = first; i < p.cols; i += step) {
    const Index c = Index(i) / spatial;
    const float d = load(i) * s.scale - s.pivot - s.shift;
    const int64_t to = kDense ? i : c * p.out_channel + p.out_spatial.offset<C.nested>(i % spatial);
    out[to] =
        T(d * rstd * value_or<W>(p.weight, channel + c, 1) + value_or<W>(p.bias, channel + c, 0));
  }
}

// C.vector neighbours of a dense row from column `at` on. An access finds its plane by a
// multiplication; if planes are no whole accesses its elements count down to the next one.
template <class T, class W, Config C>
TC_DEVICE void store_neighbours(const Params& p, T* out, int64_t channel, uint32_t at,
                                const float (&h)[C.vector], const Statistics& s) {
  const uint32_t plane = p.by_spatial.quotient(at);
  uint32_t next = (plane + 1) * p.by_spatial.divisor - at;
  channel += plane;
  Affine f = affine<W>(p, channel, s);
  float y[C.vector];
  for (int e = 0; e < C.vector; ++e) {
    if constexpr (!C.planes) {
      if (uint32_t(e) == next) {
        next += p.by_spatial.divisor;
        f = affine<W>(p, ++channel, s);
      }
    }
    y[e] = (h[e] - s.pivot - s.shift) * f.scale + f.bias;
  }
  store_floats(out + at, y);
}

}  // namespace tensorcraft::kernel::group_norm

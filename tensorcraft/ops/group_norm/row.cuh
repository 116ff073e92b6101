// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/moments.cuh"
#include "tensorcraft/device/row_group.cuh"
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

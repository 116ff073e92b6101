// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/ops/pool2d/params.h"

// What both rungs do with a window.
namespace tensorcraft::kernel::pool2d {

// The maximum or the sum of C.vector neighbouring channels, tap by tap.
template <Config C>
struct Pool {
  float values[C.vector];
  int taps = 0;  // that lie in the image

  TC_DEVICE Pool() {
    for (float& v : values) v = C.mean ? 0.0f : -kInfinity;
  }
  template <class T>
  TC_DEVICE void add(const T* from) {
    const auto x = Packed<T, C.vector>::load(from);
#pragma unroll
    for (int i = 0; i < C.vector; ++i)
      values[i] = C.mean ? values[i] + x[i] : fmax_nan(values[i], x[i]);
    ++taps;
  }
  template <class T>
  TC_DEVICE void store(const Params& p, T* out) {
    if constexpr (C.mean != 0) {
      const float count = p.count_padding ? float(p.rows.taps * p.columns.taps) : float(taps);
#pragma unroll
      for (float& v : values) v = taps ? v / count : 0.0f;
    }
    from_floats<T, C.vector>(values).store(out);
  }
};

// The window of one place of the result and C.vector channels.
template <class T, Config C>
TC_DEVICE void pool_window(const Params& p, int64_t sample, int64_t row, int64_t column,
                           int64_t channel) {
  const T* x = static_cast<const T*>(p.x) + sample * p.x_at.sample + channel * p.x_at.channel;
  Pool<C> pool;
  for (int64_t r = 0; r < p.rows.taps; ++r) {
    const int64_t y = p.rows.at(row, r);
    if (!p.rows.has(y)) continue;
    for (int64_t s = 0; s < p.columns.taps; ++s) {
      const int64_t at = p.columns.at(column, s);
      if (p.columns.has(at)) pool.add(x + y * p.x_at.row + at * p.x_at.column);
    }
  }
  pool.store(p, static_cast<T*>(p.out) + p.out_at.offset(sample, row, column, channel));
}

}  // namespace tensorcraft::kernel::pool2d

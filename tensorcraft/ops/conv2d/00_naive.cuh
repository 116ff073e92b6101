// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one element of the result: it goes through its window, and through the channels of
// its group at each tap. Neighbouring threads have neighbouring elements of the result, so they
// read the same weights or the same inputs; each of both is read from memory or a cache once for
// every product. Any strides.
#include "tensorcraft/ops/conv2d/finish.cuh"

namespace tensorcraft::kernel::conv2d {

// Counted along the unit stride of the result: channels last, or columns last.
TC_DEVICE Place place_of(const Params& p, int64_t i, int64_t& channel) {
  const int64_t all = p.groups * p.filters;
  if (p.out_at.channel == 1) {
    channel = i % all;
    i /= all;
  }
  const int64_t column = i % p.columns.out;
  i /= p.columns.out;
  const int64_t row = i % p.rows.out;
  i /= p.rows.out;
  if (p.out_at.channel != 1) {
    channel = i % all;
    i /= all;
  }
  return {i, row, column};
}

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (i >= p.batch * p.rows.out * p.columns.out * p.groups * p.filters) return;
    int64_t filter = 0;
    const Place at = place_of(p, i, filter);
    const T* x = static_cast<const T*>(p.x) + at.sample * p.x_at.sample +
                 filter / p.filters * p.channels * p.x_at.channel;
    const T* w = static_cast<const T*>(p.w) + filter * p.w_at.filter;
    float sum[1] = {};
    for (int64_t r = 0; r < p.rows.taps; ++r) {
      const int64_t y = p.rows.at(at.row, r);
      for (int64_t s = 0; s < p.columns.taps; ++s) {
        const int64_t column = p.columns.at(at.column, s);
        const bool inside = p.rows.has(y) && p.columns.has(column);
        const T* from = x + y * p.x_at.row + column * p.x_at.column;
        const T* by = w + r * p.w_at.row + s * p.w_at.column;
        for (int64_t c = 0; c < p.channels; ++c)
          sum[0] +=
              (inside ? float(from[c * p.x_at.channel]) : 0.0f) * float(by[c * p.w_at.channel]);
      }
    }
    finish<T, C>(p, sum, at, filter);
  }
};

}  // namespace tensorcraft::kernel::conv2d

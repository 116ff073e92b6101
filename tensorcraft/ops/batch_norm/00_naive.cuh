// SPDX-License-Identifier: Apache-2.0
#pragma once
// Inference: one thread, one element; its channel costs two divisions, and the channel's four
// parameters are read and folded again for each element. Training: one thread, one channel,
// three walks over it; neighbouring threads read addresses a whole plane apart. Any strides.
#include "tensorcraft/device/compensated_sum.cuh"
#include "tensorcraft/device/moments.cuh"
#include "tensorcraft/ops/batch_norm/channel.cuh"

namespace tensorcraft::kernel::batch_norm {

// f(difference to the pivot, place) for every element of a channel.
template <Config C, class T, class F>
TC_DEVICE void for_each_element(const Params& p, const T* x, float pivot, F f) {
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t s = 0; s < p.spatial; ++s)
      f(float(x[offset<C>(p.x_layout, {n, s})]) - pivot, Place{n, s});
}

template <class T, class W, Config C>
TC_DEVICE void train_channel(const Params& p, int64_t channel) {
  const T* x = static_cast<const T*>(p.x) + channel * p.x_layout.channel;
  T* out = static_cast<T*>(p.out) + channel * p.out_layout.channel;
  const float pivot = finite_or_zero(float(x[0]));
  const float count = float(p.batch) * float(p.spatial);
  CompensatedSum sum, squares;
  for_each_element<C>(p, x, pivot, [&](float d, Place) { sum.add(d); });
  const float shift = sum.value() / count;
  for_each_element<C>(p, x, pivot, [&](float d, Place) {
    d -= shift;
    squares.add(d * d);
  });
  const float rstd = rsqrtf(squares.value() / count + p.eps);
  if (is_extreme<T>(rstd)) return train_extreme_channel<1, T, W, C>(p, channel);
  const float scale = value_or<W>(p.weight, channel, 1) * rstd;
  const float bias = value_or<W>(p.bias, channel, 0);
  for_each_element<C>(p, x, pivot, [&](float d, Place at) {
    out[offset<C>(p.out_layout, at)] = T(activate(p.activation, (d - shift) * scale + bias));
  });
  store_statistics<W>(p, channel, pivot + shift, rstd, squares.value(), count);
}

struct Naive {
  template <class T, class W, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if constexpr (C.training) {
      if (i < p.channels) train_channel<T, W, C>(p, i);
    } else {
      const int64_t plane = i / p.spatial, sample = plane / p.channels;
      if (sample >= p.batch) return;
      const int64_t channel = plane % p.channels;
      const Folded f = fold<W>(p, channel);
      const T* x = static_cast<const T*>(p.x) + channel * p.x_layout.channel;
      T* out = static_cast<T*>(p.out) + channel * p.out_layout.channel;
      const Place at{sample, i % p.spatial};
      const float y = float(x[offset<C>(p.x_layout, at)]) * f.scale + f.shift;
      out[offset<C>(p.out_layout, at)] = T(activate(p.activation, y));
    }
  }
};

}  // namespace tensorcraft::kernel::batch_norm

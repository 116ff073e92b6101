// SPDX-License-Identifier: Apache-2.0
#pragma once
// A thread has 16 bytes of channels and C.tokens neighbouring tokens. The last inputs stay in
// registers, so that each is read once for its width taps, C.width - 1 more at a thread's start;
// weights are read once.
// It demands channels side by side, in whole aligned units of 16 bytes, and a width of 2 to 4.
#include "tensorcraft/device/activation.cuh"
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/ops/causal_conv1d/params.h"

namespace tensorcraft::kernel::causal_conv1d {

struct Vectorized {
  template <class T, Config C>
  using Unit = Packed<T, C.vector>;

  // Token t of a sample; before the first comes the state.
  template <class T, Config C>
  TC_DEVICE static Unit<T, C> unit_at(const Params& p, int64_t sample, int64_t t, int64_t channel) {
    if (t >= 0)
      return Unit<T, C>::load(static_cast<const T*>(p.x) + p.x_at.offset(sample, t, channel));
    if (!p.state) return {};
    return Unit<T, C>::load(static_cast<const T*>(p.state) +
                            p.state_at.offset(sample, t + C.width - 1, channel));
  }

  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int before = C.width - 1;
    const int64_t units = p.channels / C.vector;
    const int64_t pieces = div_ceil(p.tokens, int64_t(C.tokens)) + (p.new_state ? 1 : 0);
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (i >= p.batch * pieces * units) return;
    const int64_t c = i % units * C.vector, n = i / units / pieces;
    const int64_t first = i / units % pieces * C.tokens;
    if (first >= p.tokens) {  // the piece behind the last is the new state
#pragma unroll
      for (int place = 0; place < before; ++place)
        unit_at<T, C>(p, n, p.tokens - before + place, c)
            .store(static_cast<T*>(p.new_state) + p.new_state_at.offset(n, place, c));
      return;
    }
    float w[C.width][C.vector], bias[C.vector] = {};
#pragma unroll
    for (int j = 0; j < C.vector; ++j) {
      const T* from = static_cast<const T*>(p.w) + (c + j) * p.w_channel;
#pragma unroll
      for (int tap = 0; tap < C.width; ++tap) w[tap][j] = float(from[tap * p.w_tap]);
      if (p.bias) bias[j] = float(static_cast<const T*>(p.bias)[(c + j) * p.bias_stride]);
    }
    Unit<T, C> inputs[C.tokens + before];
#pragma unroll
    for (int t = 0; t < C.tokens + before; ++t)
      inputs[t] =
          first + t - before < p.tokens ? unit_at<T, C>(p, n, first + t - before, c) : Unit<T, C>{};
#pragma unroll
    for (int t = 0; t < C.tokens; ++t) {
      if (first + t >= p.tokens) break;
      float sums[C.vector];
#pragma unroll
      for (int j = 0; j < C.vector; ++j) {
        sums[j] = 0;
#pragma unroll
        for (int tap = 0; tap < C.width; ++tap) sums[j] += w[tap][j] * inputs[t + tap][j];
        sums[j] += bias[j];
        if (p.silu) sums[j] = silu(sums[j]);
      }
      from_floats<T, C.vector>(sums).store(static_cast<T*>(p.out) +
                                           p.out_at.offset(n, first + t, c));
    }
  }
};

}  // namespace tensorcraft::kernel::causal_conv1d

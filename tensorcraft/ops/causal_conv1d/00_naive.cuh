// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one element of the result, or of the new state, which is as if width - 1 tokens more
// were asked for. Each input is read for every tap. Any strides.
#include "tensorcraft/device/activation.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/ops/causal_conv1d/params.h"

namespace tensorcraft::kernel::causal_conv1d {

// Token t of a sample; before the first comes the state.
template <class T>
TC_DEVICE float token_at(const Params& p, int64_t sample, int64_t t, int64_t channel) {
  if (t >= 0) return float(static_cast<const T*>(p.x)[p.x_at.offset(sample, t, channel)]);
  if (!p.state) return 0;
  return float(static_cast<const T*>(p.state)[p.state_at.offset(sample, t + p.width - 1, channel)]);
}

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    const int64_t steps = p.tokens + (p.new_state ? p.width - 1 : 0);
    if (i >= p.batch * steps * p.channels) return;
    const int64_t c = i % p.channels, t = i / p.channels % steps, n = i / p.channels / steps;
    if (t >= p.tokens) {
      const int64_t place = t - p.tokens;  // of the new state
      static_cast<T*>(p.new_state)[p.new_state_at.offset(n, place, c)] =
          T(token_at<T>(p, n, t - (p.width - 1), c));
      return;
    }
    float sum = 0;
    for (int64_t tap = 0; tap < p.width; ++tap)
      sum += float(static_cast<const T*>(p.w)[c * p.w_channel + tap * p.w_tap]) *
             token_at<T>(p, n, t - (p.width - 1) + tap, c);
    if (p.bias) sum += float(static_cast<const T*>(p.bias)[c * p.bias_stride]);
    static_cast<T*>(p.out)[p.out_at.offset(n, t, c)] = T(p.silu ? silu(sum) : sum);
  }
};

}  // namespace tensorcraft::kernel::causal_conv1d

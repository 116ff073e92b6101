// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft::kernel::causal_conv1d {

// Strides of [batch, tokens, channels], in elements.
struct Strides {
  int64_t sample, token, channel;
  TC_HOST_DEVICE constexpr int64_t offset(int64_t n, int64_t t, int64_t c) const {
    return n * sample + t * token + c * channel;
  }
};

// Run time: what the host passes to every rung. bias, state and new_state may be null.
struct Params {
  const void *x, *w, *bias, *state;
  void *out, *new_state;
  int64_t batch, tokens, channels, width;
  Strides x_at, out_at, state_at, new_state_at;
  int64_t w_channel, w_tap, bias_stride;
  int64_t silu;
};

// Compile time: each value of a Config that a choice gives is a kernel of its own.
struct Config {
  int threads = 256;
  int vector = 1;  // channels of a thread
  int width = 0;   // taps; 0: any number
  int tokens = 1;  // neighbours of a thread
};

}  // namespace tensorcraft::kernel::causal_conv1d

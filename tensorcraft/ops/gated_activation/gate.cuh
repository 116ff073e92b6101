// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/activation.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/ops/gated_activation/params.h"

namespace tensorcraft::kernel::gated_activation {

// x / (1 + e^-u). A division is about 10 instructions and an exact exponential 8, more than the
// bytes of a 16-bit element leave time for: there the special function unit does both, with errors
// far below one rounding to the dtype.
template <class T>
TC_DEVICE float times_sigmoid(float x, float u) {
  if constexpr (sizeof(T) == 2)
    return x * ptx::rcp_approx_ftz(1.0f + exp_fast(-u));
  else
    return x / (1.0f + expf(-u));
}

template <class T, Activation gate>
TC_DEVICE float activate(float x) {
  if constexpr (gate == Activation::silu) {
    return times_sigmoid<T>(x, x);
  } else if constexpr (gate == Activation::gelu) {
    return tensorcraft::gelu(x);
  } else if constexpr (sizeof(T) != 2) {
    return tensorcraft::gelu_tanh(x);
  } else {
    // 0.5 x (1 + tanh(u)) is x / (1 + e^(-2u)).
    return times_sigmoid<T>(x, 1.5957691216057308f * fmaf(0.044715f * x * x, x, x));
  }
}

// One element of the output, before it is rounded to T.
template <class T, Activation gate>
TC_DEVICE float gated(float x, float up) {
  return activate<T, gate>(x) * up;
}

}  // namespace tensorcraft::kernel::gated_activation

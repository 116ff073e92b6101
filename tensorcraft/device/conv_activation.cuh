// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/activation.cuh"
#include "tensorcraft/device/conv_activation.h"

namespace tensorcraft {

// NaN stays NaN.
TC_DEVICE float relu6(float x) { return fmin_nan(fmax_nan(x, 0.0f), 6.0f); }

// x relu6(x + 3) / 6; the quotient is exact where the piece is x itself.
TC_DEVICE float hard_swish(float x) { return x * (relu6(x + 3.0f) / 6.0f); }

// For a result of type Out: of 2 bytes gelu and silu are those at half the cost.
template <ConvActivation kActivation, class Out>
TC_DEVICE float activate(float x) {
  constexpr bool fast = sizeof(Out) == 2;
  if constexpr (kActivation == ConvActivation::relu) return relu(x);
  if constexpr (kActivation == ConvActivation::relu6) return relu6(x);
  if constexpr (kActivation == ConvActivation::gelu) return fast ? gelu_fast(x) : gelu(x);
  if constexpr (kActivation == ConvActivation::silu) return fast ? silu_fast(x) : silu(x);
  if constexpr (kActivation == ConvActivation::hard_swish) return hard_swish(x);
  return x;
}

}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/math.cuh"

// Activations in float. NaN stays NaN.
namespace tensorcraft {

TC_DEVICE float relu(float x) { return fmax_nan(x, 0.0f); }

// x / (1 + e^-x)
TC_DEVICE float silu(float x) { return x / (1.0f + expf(-x)); }

// x times the normal distribution's cumulative probability at x.
TC_DEVICE float gelu(float x) {
  constexpr float sqrt_half = 0.70710678f;
  return 0.5f * x * (1.0f + erff(x * sqrt_half));
}

// The approximation of gelu by tanh(sqrt(2 / pi) (x + 0.044715 x^3)).
TC_DEVICE float gelu_tanh(float x) {
  constexpr float sqrt_two_over_pi = 0.79788456f, cubic = 0.044715f;
  return 0.5f * x * (1.0f + tanhf(sqrt_two_over_pi * (x + cubic * x * x * x)));
}

// One of them by a value of an operator's own enum Activation, known to the compiler or at run
// time.
template <auto kActivation>
TC_DEVICE float activate(float x) {
  using A = decltype(kActivation);
  if constexpr (kActivation == A::relu) return relu(x);
  if constexpr (kActivation == A::gelu) return gelu(x);
  if constexpr (kActivation == A::gelu_tanh) return gelu_tanh(x);
  if constexpr (kActivation == A::silu) return silu(x);
  return x;
}
template <class A>
TC_DEVICE float activate(A activation, float x) {
  if (activation == A::relu) return relu(x);
  if (activation == A::gelu) return gelu(x);
  if (activation == A::gelu_tanh) return gelu_tanh(x);
  if (activation == A::silu) return silu(x);
  return x;
}

}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/activation.h"
#include "tensorcraft/device/math.cuh"

// Activations in float. NaN stays NaN.
namespace tensorcraft {

TC_DEVICE float relu(float x) { return fmax_nan(x, 0.0f); }

// x times the normal distribution's cumulative probability at x, 27 instructions without a branch,
// while erfcf has 50. The tail past z = |x| is e^(-z^2 / 2) times a quotient of polynomials, fitted
// to it from 0 to 16 with a relative error of 2^-27; past 16 the exponential is 0. So the far
// negative side keeps its relative precision, 6 units in the last place, as the argument of the
// exponential does: what float leaves of z^2 and of its product is added to first order.
TC_DEVICE float gelu(float x) {
  const float z = fminf(fabsf(x), 16.0f);
  float above = fmaf(0.00422213133f, z, 0.0413417332f);
  above = fmaf(above, z, 0.185329288f);
  above = fmaf(above, z, 0.441108823f);
  above = fmaf(above, z, 0.5f);
  float below = fmaf(0.0105832163f, z, 0.103633888f);
  below = fmaf(below, z, 0.475000858f);
  below = fmaf(below, z, 1.21118093f);
  below = fmaf(below, z, 1.68010271f);
  below = fmaf(below, z, 1.0f);
  const float ratio = above * ptx::rcp_approx_ftz(below);
  constexpr float half = 0.72134752f, half_rest = 9.6298149e-9f;  // log2(e) / 2
  const float square = z * z, exponent = half * square;
  float rest = fmaf(half, square, -exponent);
  rest = fmaf(half, fmaf(z, z, -square), rest);
  rest = fmaf(half_rest, square, rest);
  float power = exp2_fast(-exponent);
  power = fmaf(-kLn2 * rest, power, power);
  return x * (x >= 0.0f ? fmaf(-ratio, power, 1.0f) : ratio * power);
}

// y / (1 + e^-(v + rest)) for a rest that v has lost to rounding. A quarter of the divisor has a
// reciprocal that the special function unit does not flush, down to results of 2^-123.
TC_DEVICE float over_one_plus_exp(float y, float v, float rest) {
  return 0.25f * y * ptx::rcp_approx_ftz(fmaf(0.25f, expf(-v) * (1.0f - rest), 0.25f));
}

// x / (1 + e^-x)
TC_DEVICE float silu(float x) { return over_one_plus_exp(x, x, 0.0f); }

// The approximation of gelu by tanh(sqrt(2 / pi) (x + 0.044715 x^3)), as x / (1 + e^-2u): 1 + tanh
// would cancel below 0. 2u is x (linear + cubic x^2), in two floats: the exponential turns its
// absolute error into a relative one.
TC_DEVICE float gelu_tanh(float x) {
  constexpr float linear = 1.59375f, linear_rest = 0.0020191216f;
  constexpr float cubic = 0.071354814f, cubic_rest = 2.3988324e-9f;
  const float z = fminf(fmaxf(x, -16.0f), 16.0f);
  const float square = z * z, product = cubic * square;
  float rest = fmaf(cubic, square, -product) + linear_rest;
  rest = fmaf(cubic, fmaf(z, z, -square), fmaf(cubic_rest, square, rest));
  const float larger = fmaxf(product, linear), smaller = fminf(product, linear);
  const float sum = larger + smaller;
  rest += smaller - (sum - larger);
  const float slope = sum + rest, v = z * slope;
  rest -= slope - sum;
  return over_one_plus_exp(x, v, fmaf(z, rest, fmaf(z, slope, -v)));
}

// For results of 2 bytes: some units in the last place of a float off, which is far behind the
// digits that are left, at half the cost.
TC_DEVICE float sigmoid_fast(float x) { return ptx::rcp_approx_ftz(1.0f + exp_fast(-x)); }
TC_DEVICE float silu_fast(float x) { return x * sigmoid_fast(x); }
TC_DEVICE float gelu_tanh_fast(float x) {
  return x * sigmoid_fast(1.5957691216057308f * fmaf(0.044715f * x * x, x, x));
}
// The normal distribution's tail behind |x|: Abramowitz and Stegun 7.1.26 gives erfc of a positive
// number as a polynomial of t times e^(-z^2), here halved.
TC_DEVICE float gelu_fast(float x) {
  const float t = ptx::rcp_approx_ftz(fmaf(0.3275911f * 0.7071067811865476f, fabsf(x), 1.0f));
  float tail = fmaf(t, 0.5307027145f, -0.7265760135f);
  tail = fmaf(t, tail, 0.7107068705f);
  tail = fmaf(t, tail, -0.142248368f);
  tail = fmaf(t, tail, 0.127414796f);
  tail *= t * exp2_fast(-0.5f * kLog2E * x * x);
  return x * (x >= 0.0f ? 1.0f - tail : tail);
}

// Applies an activation that the compiler knows, for a result of type Out, or one given at run
// time.
template <Activation kActivation, class Out = float>
TC_DEVICE float activate(float x) {
  constexpr bool fast = sizeof(Out) == 2;
  if constexpr (kActivation == Activation::relu) return relu(x);
  if constexpr (kActivation == Activation::gelu) return fast ? gelu_fast(x) : gelu(x);
  if constexpr (kActivation == Activation::gelu_tanh)
    return fast ? gelu_tanh_fast(x) : gelu_tanh(x);
  if constexpr (kActivation == Activation::silu) return fast ? silu_fast(x) : silu(x);
  return x;
}
TC_DEVICE float activate(Activation activation, float x) {
  if (activation == Activation::relu) return relu(x);
  if (activation == Activation::gelu) return gelu(x);
  if (activation == Activation::gelu_tanh) return gelu_tanh(x);
  if (activation == Activation::silu) return silu(x);
  return x;
}

}  // namespace tensorcraft

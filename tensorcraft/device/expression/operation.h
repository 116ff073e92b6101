// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft::expression {

// What is done to each element: first those of no input, then of one, of two and of three. Those of
// ops/elementwise have rungs of their own; every one but fill and copy can be a step of an
// expression (step.h).
enum class Operation : int {
  fill,
  copy,
  astype,
  negative,
  abs,
  sign,
  round,
  floor,
  ceil,
  trunc,
  bitwise_invert,
  exp,
  log,
  sqrt,
  rsqrt,
  tanh,
  sigmoid,
  relu,
  leaky_relu,
  elu,
  silu,
  swish,
  gelu,
  gelu_tanh,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  expm1,
  exp2,
  log1p,
  log2,
  log10,
  erf,
  add,
  subtract,
  multiply,
  divide,
  maximum,
  minimum,
  pow,
  floor_divide,
  remainder,
  atan2,
  hypot,
  logaddexp,
  copysign,
  nextafter,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  bitwise_left_shift,
  bitwise_right_shift,
  equal,
  not_equal,
  less,
  less_equal,
  where,
};

TC_HOST_DEVICE constexpr int num_inputs(Operation o) {
  return o == Operation::fill ? 0 : o < Operation::add ? 1 : o < Operation::where ? 2 : 3;
}

}  // namespace tensorcraft::expression

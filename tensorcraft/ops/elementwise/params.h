// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::elementwise {

// What is done to each element: first those of no input, then of one, of two and of three. Those of
// elementwise.cpp have rungs of their own; every one but fill and copy can be a step of an
// expression (program.cuh).
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

// Run time: inputs are broadcast to the shape of out, `b` is unused if there is one input. The
// maps give the offset of an element from its row-major index.
struct Params {
  const void* a;
  const void* b;
  void* out;
  int64_t size;
  RowMap a_map, b_map, out_map;
  float alpha;          // the operation's one parameter: slope, scale, beta
  uint64_t fill_value;  // the bits of one element
};

// Compile time. A single input is one element that every output shares.
struct Config {
  Operation operation;
  int threads = 256;
  int vectors = 4;  // vector accesses a thread has in flight, for each input
  int single_a = 0;
  int single_b = 0;
  int nested = 0;  // a tensor does not merge into one axis
};

}  // namespace tensorcraft::kernel::elementwise

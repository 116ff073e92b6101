// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

// The operations on elements: X(name, inputs, operands). A row makes a value of Operation and its
// name, and puts the functor of that name (functors.cuh, math_functors.cuh) where an operation is
// searched for at run time. `inputs` is their number, `operands` one of Operands. Order counts for
// ranges: exp to gelu_tanh are one (plan.h), comparisons and where another, at the end.

// Functions of one float that C has under the same name: sinf on devices, sin for references.
#define TC_C_FUNCTIONS(X) \
  X(sin, 1, floats)       \
  X(cos, 1, floats)       \
  X(tan, 1, floats)       \
  X(asin, 1, floats)      \
  X(acos, 1, floats)      \
  X(atan, 1, floats)      \
  X(sinh, 1, floats)      \
  X(cosh, 1, floats)      \
  X(asinh, 1, floats)     \
  X(acosh, 1, floats)     \
  X(atanh, 1, floats)     \
  X(expm1, 1, floats)     \
  X(exp2, 1, floats)      \
  X(log1p, 1, floats)     \
  X(log2, 1, floats)      \
  X(log10, 1, floats)     \
  X(erf, 1, floats)

// Operations of ops/elementwise have rungs of their own; every one but fill and copy can be a step
// of an expression (step.h).
#define TC_OPERATIONS(X)              \
  X(fill, 0, none)                    \
  X(copy, 1, none)                    \
  X(astype, 1, none)                  \
  X(negative, 1, numbers)             \
  X(abs, 1, numbers)                  \
  X(sign, 1, numbers)                 \
  X(round, 1, floats)                 \
  X(floor, 1, floats)                 \
  X(ceil, 1, floats)                  \
  X(trunc, 1, floats)                 \
  X(bitwise_invert, 1, integers)      \
  X(exp, 1, floats)                   \
  X(log, 1, floats)                   \
  X(sqrt, 1, floats)                  \
  X(rsqrt, 1, floats)                 \
  X(tanh, 1, floats)                  \
  X(sigmoid, 1, formula)              \
  X(relu, 1, floats)                  \
  X(leaky_relu, 1, floats)            \
  X(elu, 1, formula)                  \
  X(silu, 1, formula)                 \
  X(swish, 1, formula)                \
  X(gelu, 1, formula)                 \
  X(gelu_tanh, 1, formula)            \
  TC_C_FUNCTIONS(X)                   \
  X(add, 2, numbers)                  \
  X(subtract, 2, numbers)             \
  X(multiply, 2, numbers)             \
  X(divide, 2, floats)                \
  X(maximum, 2, numbers)              \
  X(minimum, 2, numbers)              \
  X(pow, 2, numbers)                  \
  X(floor_divide, 2, numbers)         \
  X(remainder, 2, numbers)            \
  X(atan2, 2, floats)                 \
  X(hypot, 2, floats)                 \
  X(logaddexp, 2, floats)             \
  X(copysign, 2, floats)              \
  X(nextafter, 2, none)               \
  X(bitwise_and, 2, integers)         \
  X(bitwise_or, 2, integers)          \
  X(bitwise_xor, 2, integers)         \
  X(bitwise_left_shift, 2, integers)  \
  X(bitwise_right_shift, 2, integers) \
  X(equal, 2, compared)               \
  X(not_equal, 2, compared)           \
  X(less, 2, compared)                \
  X(less_equal, 2, compared)          \
  X(where, 3, none)

namespace tensorcraft::expression {

#define TC_VALUE(name, ...) name,
enum class Operation : int { TC_OPERATIONS(TC_VALUE) };
#undef TC_VALUE

// The operands that the functor of an operation takes.
enum class Operands : int {
  none,  // there is none
  floats,
  formula,  // floats, and has a short form for results of 2 bytes
  integers,
  numbers,   // floats or integers
  compared,  // the same, and gives bool
};

TC_HOST_DEVICE constexpr int num_inputs(Operation o) {
  switch (o) {
#define TC_INPUTS(name, inputs, ...) \
  case Operation::name:              \
    return inputs;
    TC_OPERATIONS(TC_INPUTS)
#undef TC_INPUTS
  }
  return 0;
}

TC_HOST_DEVICE constexpr Operands operands_of(Operation o) {
  switch (o) {
#define TC_OPERANDS_OF(name, inputs, operands) \
  case Operation::name:                        \
    return Operands::operands;
    TC_OPERATIONS(TC_OPERANDS_OF)
#undef TC_OPERANDS_OF
  }
  return Operands::none;
}

}  // namespace tensorcraft::expression

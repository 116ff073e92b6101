// SPDX-License-Identifier: Apache-2.0
#pragma once
// The functions of expressions that have no kernels of their own: a line each.
#include "tensorcraft/device/concepts.h"
#include "tensorcraft/device/expression/operation.h"
#include "tensorcraft/device/math.cuh"

namespace tensorcraft::expression {

// The integer below the quotient, as Python has it: the remainder has the sign of b.
TC_DEVICE float floor_divide(float a, float b) {
  if (b == 0.0f || (fabsf(a) == kInfinity && !is_nan(b))) return a / b;
  const float rest = fmodf(a, b);
  const float quotient = (a - rest) / b - (rest != 0.0f && (rest < 0.0f) != (b < 0.0f));
  if (quotient == 0.0f) return copysignf(0.0f, a / b);
  return rintf(quotient);  // the difference and the division are rounded
}
TC_DEVICE float remainder(float a, float b) {
  const float rest = fmodf(a, b);
  if (rest == 0.0f) return copysignf(0.0f, b);
  return (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
}

// log(e^a + e^b)
TC_DEVICE float logaddexp(float a, float b) {
  if (a == b) return a + kLn2;  // infinities too
  return fmax_nan(a, b) + log1pf(expf(-fabsf(a - b)));
}

// The sign of x, and 0 of both zeros; NaN stays.
TC_DEVICE float sign(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x == 0.0f ? 0.0f : x; }

// The number of T beside a on the way to b.
template <class T>
TC_DEVICE T next_after(T a, T b) {
  using Bits = Select<sizeof(T) == 2, uint16_t, uint32_t>;
  constexpr Bits negative = Bits(1) << (8 * sizeof(T) - 1);
  const float from = float(a), to = float(b);
  if (from != from) return a;
  if (from == to || to != to) return b;
  Bits bits = bit_cast<Bits>(a);
  if (from == 0.0f)
    bits = to < 0.0f ? negative | 1 : 1;
  else
    bits = Bits((from < to) == (from > 0.0f) ? bits + 1 : bits - 1);
  return bit_cast<T>(bits);
}

// Operations on floats, computed in float32.
template <Operation o>
TC_DEVICE float math(float a, float b) {
  using O = Operation;
#define TC_C_FUNCTION(name, ...) \
  if constexpr (o == O::name) return ::name##f(a);
  TC_C_FUNCTIONS(TC_C_FUNCTION)
#undef TC_C_FUNCTION
  if constexpr (o == O::sign) return sign(a);
  if constexpr (o == O::floor) return floorf(a);
  if constexpr (o == O::ceil) return ceilf(a);
  if constexpr (o == O::trunc) return truncf(a);
  if constexpr (o == O::floor_divide) return floor_divide(a, b);
  if constexpr (o == O::remainder) return remainder(a, b);
  if constexpr (o == O::atan2) return ::atan2f(a, b);
  if constexpr (o == O::hypot) return ::hypotf(a, b);
  if constexpr (o == O::logaddexp) return logaddexp(a, b);
  if constexpr (o == O::copysign) return copysignf(a, b);
}

// Operations on signed integers of 32 or 64 bits. Division by zero gives 0; a shift by less than 0
// or by all bits and more gives what shifting bit by bit would leave.
template <Operation o, class T>
TC_DEVICE T math_of_integers(T a, T b) {
  using O = Operation;
  using U = Select<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr U width = 8 * sizeof(T);
  if constexpr (o == O::sign) return T(a > 0) - T(a < 0);
  if constexpr (o == O::bitwise_invert) return ~a;
  if constexpr (o == O::bitwise_and) return a & b;
  if constexpr (o == O::bitwise_or) return a | b;
  if constexpr (o == O::bitwise_xor) return a ^ b;
  if constexpr (o == O::bitwise_left_shift) return U(b) < width ? T(U(a) << b) : T(0);
  if constexpr (o == O::bitwise_right_shift) return a >> (U(b) < width ? b : T(width - 1));
  if constexpr (o == O::floor_divide) {
    if (b == 0) return 0;
    if (b == -1) return T(U(0) - U(a));  // the smallest integer stays itself
    return a / b - T(a % b != 0 && (a < 0) != (b < 0));
  }
  if constexpr (o == O::remainder) {
    if (b == 0 || b == -1) return 0;
    const T rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
}

// Specialised for the operations whose kernels are compiled for them (functors.cuh).
template <Operation o>
struct Functor {
  TC_DEVICE float operator()(float a, float b) const { return math<o>(a, b); }
  TC_DEVICE int32_t operator()(int32_t a, int32_t b) const { return math_of_integers<o>(a, b); }
  TC_DEVICE int64_t operator()(int64_t a, int64_t b) const { return math_of_integers<o>(a, b); }
};

}  // namespace tensorcraft::expression

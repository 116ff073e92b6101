// SPDX-License-Identifier: Apache-2.0
#pragma once
// One functor an operation. Every rung calls the same ones, so all rungs agree bit for bit. Floats
// are computed in float32, products and sums that could fuse are written as fmaf, and the operation
// add never fuses with a product that is an operation of its own.
#include "tensorcraft/device/activation.cuh"
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/device/expression/convert.cuh"
#include "tensorcraft/device/expression/math_functors.cuh"

namespace tensorcraft::expression {

// a + b, rounded by itself: never one fused operation with the product that an operand may be.
TC_DEVICE float add_rn(float a, float b) {
#if TC_PTX
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}

// 1 / (1 + e^x), a unit in the last place more off than a division, which is 10 instructions and a
// branch; below 2^-126 it is 0. expf ends in a product, which must not fuse with the sum here and
// stay apart there.
TC_DEVICE float over_one_plus_exp(float x) { return ptx::rcp_approx_ftz(add_rn(1.0f, expf(x))); }

// The smallest integer stays itself.
TC_DEVICE int32_t negated(int32_t x) { return int32_t(0u - uint32_t(x)); }
TC_DEVICE int64_t negated(int64_t x) { return int64_t(uint64_t(0) - uint64_t(x)); }

template <>
struct Functor<Operation::negative> {
  TC_DEVICE float operator()(float x, float) const { return -x; }
  TC_DEVICE int32_t operator()(int32_t x, float) const { return negated(x); }
  TC_DEVICE int64_t operator()(int64_t x, float) const { return negated(x); }
};
template <>
struct Functor<Operation::abs> {
  TC_DEVICE float operator()(float x, float) const { return fabsf(x); }
  TC_DEVICE int32_t operator()(int32_t x, float) const { return x < 0 ? negated(x) : x; }
  TC_DEVICE int64_t operator()(int64_t x, float) const { return x < 0 ? negated(x) : x; }
};
template <>
struct Functor<Operation::round> {
  TC_DEVICE float operator()(float x, float) const { return rintf(x); }
};
template <>
struct Functor<Operation::exp> {
  TC_DEVICE float operator()(float x, float) const { return expf(x); }
};
template <>
struct Functor<Operation::log> {
  TC_DEVICE float operator()(float x, float) const { return logf(x); }
};
template <>
struct Functor<Operation::sqrt> {
  TC_DEVICE float operator()(float x, float) const { return sqrtf(x); }
};
template <>
struct Functor<Operation::rsqrt> {
  TC_DEVICE float operator()(float x, float) const { return rsqrtf(x); }
};
template <>
struct Functor<Operation::tanh> {
  TC_DEVICE float operator()(float x, float) const { return tanhf(x); }
};
template <>
struct Functor<Operation::sigmoid> {
  TC_DEVICE float operator()(float x, float) const { return over_one_plus_exp(-x); }
};
template <>
struct Functor<Operation::relu> {
  // NaN compares false and stays.
  TC_DEVICE float operator()(float x, float) const { return x < 0.0f ? 0.0f : x; }
};
template <>
struct Functor<Operation::leaky_relu> {
  TC_DEVICE float operator()(float x, float alpha) const { return x > 0.0f ? x : alpha * x; }
};
template <>
struct Functor<Operation::elu> {
  TC_DEVICE float operator()(float x, float alpha) const {
    return x > 0.0f ? x : alpha * expm1f(x);
  }
};
template <>
struct Functor<Operation::silu> {
  TC_DEVICE float operator()(float x, float) const { return tensorcraft::silu(x); }
};
template <>
struct Functor<Operation::swish> {
  TC_DEVICE float operator()(float x, float beta) const {
    const float v = beta * x, rest = fmaf(beta, x, -v);
    return tensorcraft::over_one_plus_exp(x, v, fabsf(v) < 128.0f ? rest : 0.0f);
  }
};
template <>
struct Functor<Operation::gelu> {
  TC_DEVICE float operator()(float x, float) const { return tensorcraft::gelu(x); }
};
template <>
struct Functor<Operation::gelu_tanh> {
  TC_DEVICE float operator()(float x, float) const { return tensorcraft::gelu_tanh(x); }
};

// The functor if the result has 2 bytes: formulas that are some units in the last place of a
// float off, which is far behind the digits that are left, and cost half.
template <Operation operation>
struct ShortFunctor : Functor<operation> {};

template <>
struct ShortFunctor<Operation::sigmoid> {
  TC_DEVICE float operator()(float x, float) const { return sigmoid_fast(x); }
};
template <>
struct ShortFunctor<Operation::silu> {
  TC_DEVICE float operator()(float x, float) const { return silu_fast(x); }
};
template <>
struct ShortFunctor<Operation::swish> {
  TC_DEVICE float operator()(float x, float beta) const { return x * sigmoid_fast(beta * x); }
};
template <>
struct ShortFunctor<Operation::gelu_tanh> {
  TC_DEVICE float operator()(float x, float) const { return gelu_tanh_fast(x); }
};
template <>
struct ShortFunctor<Operation::gelu> {
  TC_DEVICE float operator()(float x, float) const { return gelu_fast(x); }
};
template <>
struct ShortFunctor<Operation::elu> {
  TC_DEVICE float operator()(float x, float alpha) const {
    if (x > 0.0f) return x;
    // Near 0 the difference to 1 would lose its digits.
    const float near = fmaf(x * x, fmaf(x, 1.0f / 6, 0.5f), x);
    return alpha * (x > -0.03125f ? near : exp_fast(x) - 1.0f);
  }
};

template <Operation operation, class Out>
using FunctorFor = Select<sizeof(Out) == 2, ShortFunctor<operation>, Functor<operation>>;

// Integers wrap, so they are added as unsigned.
template <class T>
struct Wrapping {
  using type = T;
};
template <>
struct Wrapping<int32_t> {
  using type = uint32_t;
};
template <>
struct Wrapping<int64_t> {
  using type = uint64_t;
};

template <>
struct Functor<Operation::add> {
  TC_DEVICE float operator()(float a, float b) const { return add_rn(a, b); }
  template <class T>
  TC_DEVICE T operator()(T a, T b) const {
    using U = typename Wrapping<T>::type;
    return T(U(a) + U(b));
  }
};
template <>
struct Functor<Operation::subtract> {
  TC_DEVICE float operator()(float a, float b) const { return add_rn(a, -b); }
  template <class T>
  TC_DEVICE T operator()(T a, T b) const {
    using U = typename Wrapping<T>::type;
    return T(U(a) - U(b));
  }
};
template <>
struct Functor<Operation::multiply> {
  template <class T>
  TC_DEVICE T operator()(T a, T b) const {
    using U = typename Wrapping<T>::type;
    return T(U(a) * U(b));
  }
};
template <>
struct Functor<Operation::divide> {
  TC_DEVICE float operator()(float a, float b) const { return a / b; }
};
template <>
struct Functor<Operation::maximum> {
  template <class T>
  TC_DEVICE T operator()(T a, T b) const {
    return a > b ? a : b;
  }
  TC_DEVICE float operator()(float a, float b) const { return fmax_nan(a, b); }
};
template <>
struct Functor<Operation::minimum> {
  template <class T>
  TC_DEVICE T operator()(T a, T b) const {
    return a < b ? a : b;
  }
  TC_DEVICE float operator()(float a, float b) const { return fmin_nan(a, b); }
};

template <>
struct Functor<Operation::pow> {
  // A square is common and exact this way.
  TC_DEVICE float operator()(float a, float b) const { return b == 2.0f ? a * a : powf(a, b); }
  // Wraps. A negative exponent gives the fraction's integer part: 1 and -1 stay, 0 for the rest.
  template <class T>
  TC_DEVICE T operator()(T a, T b) const {
    using U = typename Wrapping<T>::type;
    if (b < 0) return a == 1 || (a == -1 && b % 2 == 0) ? T(1) : a == -1 ? a : T(0);
    U power = 1;
    for (U factor = U(a), rest = U(b); rest != 0; rest >>= 1, factor *= factor)
      if (rest & 1) power *= factor;
    return T(power);
  }
};
template <>
struct Functor<Operation::equal> {
  template <class T>
  TC_DEVICE bool operator()(T a, T b) const {
    return a == b;
  }
};
template <>
struct Functor<Operation::not_equal> {
  template <class T>
  TC_DEVICE bool operator()(T a, T b) const {
    return a != b;
  }
};
template <>
struct Functor<Operation::less> {
  template <class T>
  TC_DEVICE bool operator()(T a, T b) const {
    return a < b;
  }
};
template <>
struct Functor<Operation::less_equal> {
  template <class T>
  TC_DEVICE bool operator()(T a, T b) const {
    return a <= b;
  }
};

}  // namespace tensorcraft::expression

// SPDX-License-Identifier: Apache-2.0
#pragma once
// One functor an operation. Every rung calls the same ones, so all rungs agree bit for bit. Floats
// are computed in float32, products and sums that could fuse are written as fmaf.
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/ops/elementwise/convert.cuh"
#include "tensorcraft/ops/elementwise/params.h"

namespace tensorcraft::kernel::elementwise {

template <Operation>
struct Functor;

template <>
struct Functor<Operation::negative> {
  TC_DEVICE float operator()(float x, float) const { return -x; }
  TC_DEVICE int32_t operator()(int32_t x, float) const { return int32_t(0u - uint32_t(x)); }
  TC_DEVICE int64_t operator()(int64_t x, float) const {
    return int64_t(uint64_t(0) - uint64_t(x));
  }
};
template <>
struct Functor<Operation::exp> {
  TC_DEVICE float operator()(float x, float) const { return expf(x); }
};
template <>
struct Functor<Operation::tanh> {
  TC_DEVICE float operator()(float x, float) const { return tanhf(x); }
};
template <>
struct Functor<Operation::sigmoid> {
  TC_DEVICE float operator()(float x, float) const { return 1.0f / (1.0f + expf(-x)); }
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
  TC_DEVICE float operator()(float x, float) const { return x / (1.0f + expf(-x)); }
};
template <>
struct Functor<Operation::swish> {
  TC_DEVICE float operator()(float x, float beta) const { return x / (1.0f + expf(-(beta * x))); }
};
template <>
struct Functor<Operation::gelu> {
  // x times the cumulative normal distribution; erfc keeps the far negative side precise.
  TC_DEVICE float operator()(float x, float) const {
    return x * (0.5f * erfcf(-0.7071067811865476f * x));
  }
};
template <>
struct Functor<Operation::gelu_tanh> {
  // 0.5 x (1 + tanh(u)) is x / (1 + e^(-2u)).
  TC_DEVICE float operator()(float x, float) const {
    const float u = 0.7978845608028654f * fmaf(0.044715f * x * x, x, x);
    return x / (1.0f + expf(-2.0f * u));
  }
};

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
  template <class T>
  TC_DEVICE T operator()(T a, T b) const {
    using U = typename Wrapping<T>::type;
    return T(U(a) + U(b));
  }
};
template <>
struct Functor<Operation::subtract> {
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

// Arithmetic is float32 where the result is a float, else the result's own integer type.
template <class T>
struct Computed {
  using type = float;
};
template <>
struct Computed<int32_t> {
  using type = int32_t;
};
template <>
struct Computed<int64_t> {
  using type = int64_t;
};

// One element of the output.
template <class Out, Operation operation, class A, class B>
TC_DEVICE Out evaluate(A a, B b, const Params& p) {
  using T = typename Computed<Out>::type;
  if constexpr (operation == Operation::fill) {
    return Out(p.fill_value);
  } else if constexpr (operation == Operation::copy) {
    return a;
  } else if constexpr (operation == Operation::astype) {
    return convert_element<Out>(a);
  } else if constexpr (num_inputs(operation) == 1) {
    return Out(Functor<operation>()(T(a), p.alpha));
  } else {
    return Out(Functor<operation>()(T(a), T(b)));
  }
}

}  // namespace tensorcraft::kernel::elementwise

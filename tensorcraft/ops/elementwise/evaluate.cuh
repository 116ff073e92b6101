// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/expression/functors.cuh"
#include "tensorcraft/ops/elementwise/params.h"

namespace tensorcraft::kernel::elementwise {

// Arithmetic is float32 if the result is a float, else of integers of 32 bits or more.
template <class T>
struct Computed {
  using type = Select<is_floating_point_v<T>, float, Select<sizeof(T) == 8, int64_t, int32_t>>;
};

// Does an operation compute floats from floats?
TC_DEVICE constexpr bool computes_floats(Operation o) {
  return o >= Operation::negative && o < Operation::equal;
}
template <class T>
inline constexpr bool kIsFloat = false;  // what computes in float32
template <>
inline constexpr bool kIsFloat<float> = true;
template <>
inline constexpr bool kIsFloat<f16> = true;
template <>
inline constexpr bool kIsFloat<bf16> = true;

// Computes a number that becomes an element of the output when it is rounded.
template <class Out, Operation operation>
TC_DEVICE float compute(float a, float b, const Params& p) {
  return FunctorFor<operation, Out>()(a, num_inputs(operation) == 1 ? p.alpha : b);
}

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
    return Out(FunctorFor<operation, Out>()(T(a), p.alpha));
  } else {
    return Out(FunctorFor<operation, Out>()(T(a), T(b)));
  }
}

}  // namespace tensorcraft::kernel::elementwise

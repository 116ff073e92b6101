// SPDX-License-Identifier: Apache-2.0
#pragma once
// The vocabulary that the text of a compiled expression is written in.
#include "tensorcraft/device/expression/functors.cuh"

namespace tensorcraft::expression {

// a with the sign of b, that of a NaN too.
template <class Out, class A, class B>
TC_DEVICE Out signed_as(A a, B b) {
  return Out(copysignf(float(a), sign_source(b)));
}

// One step, as its operator computes it: operands become T, the result is rounded to Out.
template <Operation operation, class T, class Out, class... X>
TC_DEVICE Out step(X... x) {
  if constexpr (operation == Operation::nextafter)
    return next_after(Out(x)...);
  else if constexpr (operation == Operation::copysign)
    return signed_as<Out>(x...);
  else
    return Out(FunctorFor<operation, Out>()(T(x)...));
}
template <class Out, class A, class B>
TC_DEVICE Out chosen(bool condition, A a, B b) {
  return condition ? convert_element<Out>(a) : convert_element<Out>(b);
}

// A number of the call: of a float, or of an integer.
template <class T, class Params>
TC_DEVICE T number(const Params& p, int i) {
  if constexpr (sizeof(T) == 4)
    return bit_cast<T>(uint32_t(p.numbers[i]));
  else
    return T(p.numbers[i]);
}

}  // namespace tensorcraft::expression

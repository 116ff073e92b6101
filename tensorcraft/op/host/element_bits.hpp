// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/host/element_type.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

// Numbers of options as elements of a tensor.
namespace tensorcraft::host {

// As astype converts a float to an integer or bool.
template <class T>
T integer_of(double value) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else {
    const double past = std::ldexp(1.0, Limits::digits);
    if (std::isnan(value)) return 0;
    if (value >= past) return Limits::max();
    return value <= double(Limits::min()) ? Limits::min() : T(value);
  }
}

// The bits of one element of `dtype` that holds `value`, converted as astype does.
inline uint64_t element_bits(DType dtype, double value) {
  return with_element_type(dtype, [&]<class T>(T*) {
    T element;
    if constexpr (std::is_integral_v<T>)
      element = integer_of<T>(value);
    else if constexpr (std::is_arithmetic_v<T>)
      element = T(value);
    else
      element = T(float(value));
    uint64_t bits = 0;
    std::memcpy(&bits, &element, sizeof(T));
    return bits;
  });
}

}  // namespace tensorcraft::host

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/number.hpp"
#include "tensorcraft/device/expression/convert.cuh"
#include "tensorcraft/op/host/element_type.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

// Numbers of options as elements of a tensor.
namespace tensorcraft::host {

// An integer that does not fit T becomes the nearest that does.
template <class T>
T integer_of(int64_t value) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, bool>)
    return value != 0;
  else
    return T(std::clamp(value, int64_t(Limits::min()), int64_t(Limits::max())));
}

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

// An element that holds `value`: a float is rounded once, or becomes an integer as astype has it,
// an integer becomes the nearest there is.
template <class T, class V>
T element_of(V value) {
  if constexpr (std::is_integral_v<T>)
    return integer_of<T>(value);
  else if constexpr (std::is_integral_v<V>)
    return expression::convert_element<T>(value);
  else if constexpr (std::is_arithmetic_v<T>)
    return T(value);
  else
    return T(std::copysign(expression::float_to_odd(std::abs(value)), float(value)));
}

// The bits of one element of `dtype` that holds `value`.
template <class V>
uint64_t element_bits(DType dtype, V value) {
  return with_element_type(dtype, [&]<class T>(T*) {
    const T element = element_of<T>(value);
    uint64_t bits = 0;
    std::memcpy(&bits, &element, sizeof(T));
    return bits;
  });
}
inline uint64_t element_bits(DType dtype, const Number& value) {
  return std::visit(
      [dtype](auto v) {
        if constexpr (std::is_same_v<decltype(v), double>)
          return element_bits(dtype, v);
        else
          return element_bits(dtype, int64_t(v));
      },
      value);
}

}  // namespace tensorcraft::host

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/float8.cuh"

namespace tensorcraft {

// The 2-byte floating-point types.
template <class T>
struct is_half {
  static constexpr bool value = false;
};
template <>
struct is_half<f16> {
  static constexpr bool value = true;
};
template <>
struct is_half<bf16> {
  static constexpr bool value = true;
};
template <class T>
inline constexpr bool is_half_v = is_half<T>::value;

// float, double and the narrow floats.
template <class T>
inline constexpr bool is_floating_point_v = is_half_v<T>;
template <>
inline constexpr bool is_floating_point_v<float> = true;
template <>
inline constexpr bool is_floating_point_v<double> = true;
template <>
inline constexpr bool is_floating_point_v<e4m3> = true;
template <>
inline constexpr bool is_floating_point_v<e5m2> = true;

// The built-in integers of every width, char and bool included, as the language's own categories.
template <class T>
inline constexpr bool is_integral_v = false;
#define TC_INTEGRAL(T) \
  template <>          \
  inline constexpr bool is_integral_v<T> = true
TC_INTEGRAL(bool);
TC_INTEGRAL(char);
TC_INTEGRAL(signed char);
TC_INTEGRAL(unsigned char);
TC_INTEGRAL(short);
TC_INTEGRAL(unsigned short);
TC_INTEGRAL(int);
TC_INTEGRAL(unsigned int);
TC_INTEGRAL(long);
TC_INTEGRAL(unsigned long);
TC_INTEGRAL(long long);
TC_INTEGRAL(unsigned long long);
#undef TC_INTEGRAL

template <class T>
concept FloatingPoint = is_floating_point_v<T>;
template <class T>
concept Numeric = is_floating_point_v<T> || is_integral_v<T>;

// The concept as a trait, for code that cannot use concepts.
template <class T>
struct is_numeric {
  static constexpr bool value = Numeric<T>;
};
template <class T>
inline constexpr bool is_numeric_v = is_numeric<T>::value;

}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#pragma once
// The element conversions of astype, the same on every device.
#include "tensorcraft/device/concepts.h"

namespace tensorcraft::expression {

// The range of an integer type as floats: lowest is exact, past is one above the largest value.
template <class T>
struct IntegerRange {
  static constexpr bool is_signed = T(-1) < T(0);
  static constexpr int bits = int(sizeof(T)) * 8 - (is_signed ? 1 : 0);
  static constexpr float past = 2.0f * float(uint64_t(1) << (bits - 1));
  static constexpr float lowest = is_signed ? -past : 0.0f;
  static constexpr T largest = T((uint64_t(1) << bits) - 1);
};

template <class T>
inline constexpr bool is_bool = false;
template <>
inline constexpr bool is_bool<bool> = true;

// An element as memory holds it, from which T is converted: any byte but 0 is true, since other
// libraries' memory may hold more than 0 and 1.
template <class T>
using InMemory = Select<is_bool<T>, uint8_t, T>;

// Rounds to odd: toward zero, with the last bit set if digits are lost. A narrower float that is
// made of the result is rounded once, since no half-way value appears. `magnitude` is not negative.
template <class U>
TC_HOST_DEVICE float float_to_odd(U magnitude) {
  const float nearest = float(magnitude);
  const U back = U(nearest);
  uint32_t bits = bit_cast<uint32_t>(nearest);
  if (back > magnitude) bits -= 1;
  if (back != magnitude) bits |= 1;
  return bit_cast<float>(bits);
}
TC_HOST_DEVICE float float_to_odd(int64_t x) {
  return x < 0 ? -float_to_odd(uint64_t(0) - uint64_t(x)) : float_to_odd(uint64_t(x));
}

// A float with the sign of x. float(x) loses that of an f16 which is NaN.
TC_HOST_DEVICE float sign_source(float x) { return x; }
TC_HOST_DEVICE float sign_source(f16 x) { return bit_cast<float>(uint32_t(x.bits) << 16); }
TC_HOST_DEVICE float sign_source(bf16 x) { return float(x); }

template <class T>
inline constexpr bool is_bf16 = false;
template <>
inline constexpr bool is_bf16<bf16> = true;

// Float to integer drops the fraction, saturates, and makes 0 of NaN. Integer to a narrower integer
// keeps the low bits. To bool is != 0. To a float rounds to nearest even, once: float32 rounds
// integers beyond 2^24, and bf16 is the only narrower float that has numbers there.
template <class To, class From>
TC_HOST_DEVICE To convert_element(From x) {
  if constexpr (is_bf16<To> && !FloatingPoint<From> && sizeof(From) >= 4) {
    return To(float_to_odd(int64_t(x)));
  } else if constexpr (FloatingPoint<To>) {
    return To(float(x));
  } else if constexpr (is_bool<To>) {
    return float(x) != 0.0f;
  } else if constexpr (!FloatingPoint<From>) {
    return To(x);
  } else {
    using Range = IntegerRange<To>;
    const float value = float(x);
    if (value != value) return To(0);
    if (value >= Range::past) return Range::largest;
    return value <= Range::lowest ? To(Range::lowest) : To(value);
  }
}

}  // namespace tensorcraft::expression

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"

namespace tensorcraft {

// The 1-byte floats, storage like f16. Conversion from float saturates: beyond the largest finite
// value, infinity included, the result is that value with the sign kept; NaN becomes 0x7f. It is
// one rounding to nearest even.

// 4 exponent and 3 mantissa bits, largest value 448, no infinity, NaN is 0x7f or 0xff.
struct e4m3 {
  uint8_t bits;

  e4m3() = default;
  TC_HOST_DEVICE explicit e4m3(float x)
      : bits(uint8_t(ptx::cvt_rn_satfinite_e4m3x2_f32(0.0f, x))) {}
  TC_HOST_DEVICE explicit operator float() const {
    return ptx::cvt_f32_f16(uint16_t(ptx::cvt_rn_f16x2_e4m3x2(bits)));
  }
  TC_HOST_DEVICE static constexpr e4m3 from_bits(uint8_t bits) { return bit_cast<e4m3>(bits); }
};

// 5 exponent and 2 mantissa bits, the upper byte of an f16: largest finite value 57344, infinities
// and NaNs exist but are never the result of a conversion from a number.
struct e5m2 {
  uint8_t bits;

  e5m2() = default;
  TC_HOST_DEVICE explicit e5m2(float x)
      : bits(uint8_t(ptx::cvt_rn_satfinite_e5m2x2_f32(0.0f, x))) {}
  TC_HOST_DEVICE explicit operator float() const { return ptx::cvt_f32_f16(uint16_t(bits << 8)); }
  TC_HOST_DEVICE static constexpr e5m2 from_bits(uint8_t bits) { return bit_cast<e5m2>(bits); }
};

static_assert(sizeof(e4m3) == 1 && sizeof(e5m2) == 1);

// Between any two element types through float, which holds every value of the narrow ones, so the
// result is rounded once.
template <class To, class From>
TC_HOST_DEVICE To convert(From x) {
  return To(float(x));
}

}  // namespace tensorcraft

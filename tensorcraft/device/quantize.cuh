// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/vec.cuh"

// Codes of 8 bits: an e4m3, e5m2 or int8 times a scale. One rule for every device: a code is
// x / scale, a true division, rounded to nearest even and saturated.
namespace tensorcraft {

// The largest code; an int8 may also be -128.
template <class Code>
inline constexpr float kLargestCode = 127;
template <>
inline constexpr float kLargestCode<e4m3> = 448;
template <>
inline constexpr float kLargestCode<e5m2> = 57344;

template <class Code>
inline constexpr bool kIsIntegerCode = kLargestCode<Code> == 127;

// x / by for `by` of up to 8 bits that the compiler knows, rounded as a division rounds, which is
// 100 instructions with its rare paths: a product of doubles is too near to the quotient to become
// another float.
TC_DEVICE float divided(float x, double by) { return float(double(x) * (1.0 / by)); }

// The scale that gives the largest code to `amax`; 1 if that would be 0. A NaN stays.
template <class Code>
TC_DEVICE float code_scale(float amax) {
  const float scale = divided(amax, kLargestCode<Code>);
  return scale == 0 ? 1.0f : scale;
}

// A divisor far from 1 is moved by this, and what it divides with it: then no reciprocal and no
// remainder is too small or too large for a float.
TC_DEVICE float factor_towards_one(float divisor) {
  constexpr float large = 1.15292150460684698e18f, far = 1.2676506002282294e30f;  // 2^60, 2^100
  const float magnitude = fabsf(divisor);
  return magnitude > large ? 1.0f / large : magnitude < 1.0f / large ? far : 1.0f;
}

// x / by for many x, rounded as a division rounds, in 4 instructions; a division has more and a
// branch, and a thousand of them take seconds to compile. A quotient by the two floats of the
// reciprocal is wrong by half a unit of its last place and 2^-22 of one; its remainder is a float,
// and corrected by that it is the float nearest to x / by, as no such x / by is nearer to the
// middle between two floats than the error of the correction. (That is not proven for divisors a
// few units off a multiple of 2^-7: tests/device/quantize_test.cpp tries all that could change a
// code.) Zeros keep their sign: both products have that of x. What has no code of its own is
// prepared() first, and everything by divisors far from 1.
template <class Code>
struct Divisor {
  // Quotients beyond these become the code of the last one.
  static constexpr float kLow = kIsIntegerCode<Code> ? -128.25f : -65536.0f;
  static constexpr float kHigh = kIsIntegerCode<Code> ? 127.25f : 65536.0f;
  float factor, divisor, reciprocal, below, rest, zero_point, limit;

  TC_DEVICE explicit Divisor(float by, float zero = 0) : zero_point(zero) {
    const float magnitude = fabsf(by);
    const bool is_usual = magnitude > 0 && magnitude < kInfinity;
    factor = is_usual ? copysignf(factor_towards_one(by), by) : ptx::rcp_approx_ftz(by);
    divisor = is_usual ? by * factor : 1.0f;
    // 1 / divisor, as a division gives it if nothing is too small or too large.
    const float near = ptx::rcp_approx_ftz(divisor);
    reciprocal = fmaf(fmaf(-divisor, near, 1.0f), near, near);
    const bool is_above = fmaf(-divisor, reciprocal, 1.0f) < 0;
    below = bit_cast<float>(bit_cast<uint32_t>(reciprocal) - uint32_t(is_above));
    rest = fmaf(-divisor, below, 1.0f) * reciprocal;
    limit = factor == 1.0f ? divisor * (kHigh - fabsf(zero_point)) : -1.0f;
  }

  // Whether divide() takes what has no larger magnitude than `largest`, which may be NaN.
  TC_DEVICE bool takes(float largest) const { return largest <= limit; }
  // The value that it takes in the place of any x. An int8 of a NaN is 0.
  TC_DEVICE float prepared(float x) const {
    x = fmax_nan(x * factor, divisor * (kLow - zero_point));
    x = fmin_nan(x, divisor * (kHigh - zero_point));
    return kIsIntegerCode<Code> && is_nan(x) ? -zero_point * divisor : x;
  }
  TC_DEVICE float divide(float x) const {
    const float quotient = fmaf(x, below, x * rest);
    return fmaf(fmaf(quotient, divisor, -x), -reciprocal, quotient);
  }
};

// The code of x / scale; a zero point is an integer from -128 to 127. An int8 of a NaN is 0.
// kInside: the quotient is a Divisor's.
template <class Code, bool kInside = false>
TC_DEVICE Code to_code(float quotient, float zero_point = 0) {
  if constexpr (kIsIntegerCode<Code>) {
    if constexpr (kInside) {
      // Above 1.5 * 2^23 a float has no fraction: the sum is rounded to an integer, half-way cases
      // to even, and its low bits are the integer's.
      constexpr float no_fraction = 12582912.0f;
      return Code(bit_cast<uint32_t>(quotient + no_fraction) + uint32_t(int32_t(zero_point)));
    } else {
      const float whole = rintf(quotient) + zero_point;
      return Code(is_nan(whole) ? 0.0f : fminf(fmaxf(whole, -128.0f), 127.0f));
    }
  } else {
    return Code(quotient);
  }
}

// kCount neighbours; float8 in pairs, for which there is one instruction.
template <class Code, bool kInside = false, int kCount>
TC_DEVICE AlignedVector<Code, kCount> to_codes(const float (&quotients)[kCount],
                                               float zero_point = 0) {
  if constexpr (kIsIntegerCode<Code> || kCount == 1) {
    AlignedVector<Code, kCount> codes;
    for (int e = 0; e < kCount; ++e) codes[e] = to_code<Code, kInside>(quotients[e], zero_point);
    return codes;
  } else {
    AlignedVector<uint16_t, kCount / 2> pairs;
    for (int e = 0; e < kCount; e += 2) {
      const float low = quotients[e], high = quotients[e + 1];
      if constexpr (kLargestCode<Code> == kLargestCode<e4m3>)
        pairs[e / 2] = ptx::cvt_rn_satfinite_e4m3x2_f32(high, low);
      else
        pairs[e / 2] = ptx::cvt_rn_satfinite_e5m2x2_f32(high, low);
    }
    return bit_cast<AlignedVector<Code, kCount>>(pairs);
  }
}

}  // namespace tensorcraft

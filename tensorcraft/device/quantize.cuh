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

// The scale that gives the largest code to `amax`; 1 where that would be 0. A NaN stays.
template <class Code>
TC_DEVICE float code_scale(float amax) {
  const float scale = amax / kLargestCode<Code>;
  return scale == 0 ? 1.0f : scale;
}

// An int8 of a NaN is 0.
template <class Code>
TC_DEVICE Code to_code(float x, float scale) {
  const float value = x / scale;
  if constexpr (kIsIntegerCode<Code>) {
    if (is_nan(value)) return Code(0);
    return Code(fminf(fmaxf(rintf(value), -128.0f), 127.0f));
  } else {
    return Code(value);
  }
}

// kCount neighbours at an address that is a multiple of kCount.
template <int kCount, class Code>
TC_DEVICE void store_codes(Code* to, const float (&from)[kCount], float scale) {
  AlignedVector<Code, kCount> codes;
  for (int e = 0; e < kCount; ++e) codes[e] = to_code<Code>(from[e], scale);
  store_vector(to, codes);
}

}  // namespace tensorcraft

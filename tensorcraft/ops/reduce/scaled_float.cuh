// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/math.cuh"

namespace tensorcraft::kernel::reduce {

// fraction * 2^exponent, where the fraction's magnitude is in [1, 2), or it is 0, infinite or NaN.
struct ScaledFloat {
  float fraction;
  int32_t exponent;

  // Without branches: a 0, which is not scaled either, and numbers below 2^-126 take the same way.
  TC_DEVICE static ScaledFloat of(float x) {
    constexpr uint32_t kExponent = 0xff;
    const bool is_tiny = fabsf(x) < 0x1p-126f;
    const float y = is_tiny ? x * 0x1p32f : x;
    const auto bits = bit_cast<uint32_t>(y);
    const uint32_t biased = bits >> 23 & kExponent;
    const bool is_number = biased - 1 < kExponent - 1;
    return {is_number ? bit_cast<float>((bits & 0x807fffffu) | 0x3f800000u) : y,
            is_number ? int32_t(biased) - (is_tiny ? 127 + 32 : 127) : 0};
  }
  // Rounded once, to an infinity or 0 beyond float32.
  TC_DEVICE float value() const {
    constexpr int kMost = 2 * 127, kLeast = 2 * -126;
    const int within = exponent > kMost ? kMost : exponent < kLeast ? kLeast : exponent;
    const int half = within / 2;
    return fraction * power_of_2(half) * power_of_2(within - half);
  }

 private:
  TC_DEVICE static float power_of_2(int n) { return bit_cast<float>(uint32_t(n + 127) << 23); }
};

}  // namespace tensorcraft::kernel::reduce

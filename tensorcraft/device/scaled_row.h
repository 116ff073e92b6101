// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

// Rows whose squares a float cannot hold: their statistics are those of the row times a power of
// two, which changes no digit.
namespace tensorcraft {

// Whether 1 / sqrt(v) is of a v that is neither below the smallest normal number nor infinite, so
// that no square was lost. One comparison; false for a NaN.
TC_HOST_DEVICE bool is_ordinary_rstd(float rstd) {
  constexpr uint32_t kLeast = 63u << 23, kMost = 190u << 23;  // 2^-64 and 2^63
  return bit_cast<uint32_t>(rstd) - kLeast <= kMost - kLeast;
}

// The factor of values of which the largest magnitude is `largest`, so that their squares
// and the sum of 2^31 of those are floats.
TC_HOST_DEVICE float scale_of_row(float largest) { return largest < 1.0f ? 0x1p100f : 0x1p-80f; }

// 1 / a power of two.
TC_HOST_DEVICE float inverse_of_power(float power) {
  return bit_cast<float>((254u << 23) - bit_cast<uint32_t>(power));
}

// The addend of a mean of squares of scaled values if eps is added to that of the values
// themselves. It stays above 0, so that equal values still become 0.
TC_HOST_DEVICE float scaled_eps(float eps, float scale) {
  const float scaled = eps * scale * scale;
  return eps > 0.0f && scaled < 0x1p-126f ? 0x1p-126f : scaled;
}

}  // namespace tensorcraft

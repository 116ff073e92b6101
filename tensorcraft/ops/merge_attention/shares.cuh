// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/math.cuh"

namespace tensorcraft::kernel::merge_attention {

// How the two sides of a row become one. A side without keys is left out and not multiplied by 0:
// its out may hold anything.
struct Shares {
  float a, b, lse;
  bool has_a, has_b;

  TC_DEVICE float merged(float x, float y) const {
    return (has_a ? a * x : 0.f) + (has_b ? b * y : 0.f);
  }
};

TC_DEVICE Shares shares_of(float lse_a, float lse_b) {
  Shares s{1.f, 1.f, lse_a, lse_a != -kInfinity, lse_b != -kInfinity};
  if (!s.has_a) s.lse = lse_b;
  if (!s.has_a || !s.has_b) return s;
  const float top = fmax_nan(lse_a, lse_b);
  const float a = expf(lse_a - top), b = expf(lse_b - top), sum = a + b;
  s.a = a / sum;
  s.b = b / sum;
  s.lse = top + logf(sum);
  return s;
}

}  // namespace tensorcraft::kernel::merge_attention

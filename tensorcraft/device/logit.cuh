// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/math.cuh"

// What attention over arrays and over pages does with scores and their sums.
namespace tensorcraft {

// Makes scores logits below a cap.
struct SoftCap {
  float cap, factor;
  TC_DEVICE SoftCap(float scale, float softcap) : cap(softcap), factor(scale / softcap) {}
  TC_DEVICE float operator()(float s) const { return cap * tanh_fast(s * factor); }
};
// A scaled score under a cap; 0: none.
TC_DEVICE float capped(float s, float softcap) {
  return softcap > 0 ? SoftCap(1.f, softcap)(s) : s;
}

// The weight of a logit beside the largest. A largest one of -inf saw nothing; -inf - (-inf) would
// be NaN.
TC_DEVICE float weight_of(float x, float top) {
  return exp2_fast((x - (top == -kInfinity ? 0.f : top)) * kLog2E);
}

// Summed values of a row are multiplied by it. A row that sees no key gives 0, not 0 / 0.
TC_DEVICE float inverse_of(float sum) { return sum == 0.f ? 0.f : 1.f / sum; }
// The logarithm of a sum of weights relative to the score `top`, of which the largest one is
// 2^log2_of_largest.
TC_DEVICE float lse_of(float top, float sum, float scale, float log2_of_largest = 0) {
  const float log_sum = logf(sum) - log2_of_largest * kLn2;
  return sum == 0.f ? -kInfinity : fmaf(top, scale, log_sum);
}

// A row whose keys have `lse`, with a sink: what its values are multiplied by besides, and its lse.
struct Finished {
  float factor, lse;
};
TC_DEVICE Finished with_sink(float lse, float sink) {
  const float top = fmaxf(lse, sink);
  if (top == -kInfinity) return {0.f, top};
  const float own = expf(lse - top), sum = own + expf(sink - top);
  return {own / sum, top + logf(sum)};
}

}  // namespace tensorcraft

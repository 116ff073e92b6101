// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arithmetic of sample(), for kernels and the CPU: only operations that every device rounds
// alike, or that are exact.
#include "tensorcraft/device/order.cuh"

namespace tensorcraft::kernel::sample {

// A weight is a whole number, that of the largest logit 2^kWeightBits, so sums are exact whoever
// adds in whatever order. Those of kMaxCols elements have 63 bits.
inline constexpr int kWeightBits = 36;

// The upper half of the product.
TC_HOST_DEVICE uint32_t high_of(uint32_t a, uint32_t b) { return uint32_t(uint64_t(a) * b >> 32); }
TC_HOST_DEVICE uint64_t high_of(uint64_t a, uint64_t b) {
  const uint64_t a0 = uint32_t(a), a1 = a >> 32, b0 = uint32_t(b), b1 = b >> 32;
  const uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
  return a1 * b1 + (middle >> 32) + ((uint32_t(middle) + a0 * b1) >> 32);
}

// 2^-t = mantissa * 2^-(31 + shift), mantissa in [2^31, 2^32), for t in [0, 63).
struct Power {
  uint32_t mantissa;
  int shift;
};
TC_HOST_DEVICE Power power_of(float t) {
  constexpr int kFraction = 26;
  constexpr uint32_t kOne = uint32_t(1) << kFraction;
  const auto fixed = uint32_t(t * float(kOne));
  const uint32_t shift = (fixed + (kOne - 1)) >> kFraction;
  const uint32_t g = ((shift << kFraction) - fixed) << (32 - kFraction);  // t = shift - g / 2^32
  // 2^g by a polynomial that is 1 at 0 and 2 at 1; its relative error is below 2^-23.
  uint32_t m = 0x003d94ddu;
  m = 0x01269deeu + high_of(m, g);
  m = 0x07251101u + high_of(m, g);
  m = 0x1ebd89fau + high_of(m, g);
  m = 0x58b93239u + high_of(m, g);
  m = 0x80000000u + high_of(m, g);
  return {m, int(shift)};
}

// 2^-t; 0 for NaN and what is too small.
TC_HOST_DEVICE uint64_t weight_of(float t) {
  if (!(t < float(kWeightBits + 1))) return 0;
  const Power p = power_of(t);
  return (uint64_t(p.mantissa) << (kWeightBits - 31)) >> p.shift;
}
// sum * 2^-t.
TC_HOST_DEVICE uint64_t scaled(uint64_t sum, float t) {
  if (!(t < 63.0f)) return 0;
  const Power p = power_of(t);
  return p.shift == 0 ? sum : high_of(sum, uint64_t(p.mantissa) << 32) >> (p.shift - 1);
}

TC_HOST_DEVICE bool is_finite(float x) { return x - x == 0.0f; }

// Value and index as one number, larger if the element comes first. All keys of a row differ.
inline constexpr int kIndexBits = 27;
TC_HOST_DEVICE uint64_t key_of(uint32_t order, int64_t index, int64_t cols) {
  return uint64_t(order) << kIndexBits | uint64_t(cols - 1 - index);
}

// The settings of a row.
struct Settings {
  float scale;     // (largest - logit) * scale is -log2 of a weight; 0: the largest is the result
  int64_t top_k;   // cols: all
  uint64_t share;  // of the weight, in 2^-64; 0: all
  uint64_t least;  // weight that stays
};
TC_HOST_DEVICE Settings settings_of(float temperature, int64_t top_k, float top_p, float min_p,
                                    int64_t cols) {
  constexpr float kLog2E = 1.4426950408889634f, kMost = 3e38f, kLeast = 2e-38f;
  constexpr float kShare = 4294967296.0f, kLargest = float(uint64_t(1) << kWeightBits);
  Settings s{0, cols, 0, 0};
  if (temperature > 0) {
    s.scale = kLog2E / temperature;
    s.scale = s.scale < kLeast ? kLeast : s.scale > kMost ? kMost : s.scale;
  }
  if (top_k > 0 && top_k < cols) s.top_k = top_k;
  if (top_p < 1) s.share = top_p > 0 ? uint64_t(top_p * kShare) << 32 : 0;
  if (top_p < 1 && s.share == 0) s.share = 1;
  if (min_p > 0) s.least = uint64_t((min_p < 1 ? min_p : 1.0f) * kLargest);
  return s;
}
// The weight that top_p asks for: share of the total, rounded up. Weights of elements do not add up
// to the total to the last bit, so a share of nearly all may be out of reach: then all stay.
TC_HOST_DEVICE uint64_t target_of(uint64_t total, uint64_t share) {
  return high_of(total, share) + (total * share != 0);
}
// Bits up to the highest that is 1.
TC_HOST_DEVICE int bits_of(uint64_t n) {
  int bits = 0;
  for (int step = 32; step > 0; step /= 2)
    if (n >> step != 0) {
      n >>= step;
      bits += step;
    }
  return bits + int(n);
}
// The order of a number below which all elements together weigh less than what may go; 0 if that is
// so little that their rounding would count.
TC_HOST_DEVICE uint32_t bound_of(uint64_t total, uint64_t target, int64_t cols, float most,
                                 float scale) {
  const uint64_t slack = total - target;
  if (slack <= total >> 20) return 0;
  // cols * 2^(kWeightBits - t) <= slack / 2, and one more for the rounding of t.
  const int t = bits_of(uint64_t(cols)) + kWeightBits - (bits_of(slack) - 1) + 2;
  return order_of(most - float(t) / scale);
}

// The random numbers of a row.
struct Draw {
  uint64_t first, second;
};
// Philox4x32-10 by Salmon, Moraes, Dror and Shaw: "Parallel random numbers: as easy as 1, 2, 3".
TC_HOST_DEVICE Draw draw_of(uint64_t seed, uint64_t offset, uint64_t row) {
  uint32_t c[4] = {uint32_t(offset), uint32_t(offset >> 32), uint32_t(row), uint32_t(row >> 32)};
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t(0xd2511f53u) * c[0], b = uint64_t(0xcd9e8d57u) * c[2];
    c[0] = uint32_t(b >> 32) ^ c[1] ^ k0;
    c[1] = uint32_t(b);
    c[2] = uint32_t(a >> 32) ^ c[3] ^ k1;
    c[3] = uint32_t(a);
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return {c[0] | uint64_t(c[1]) << 32, c[2] | uint64_t(c[3]) << 32};
}

// What is known of a chunk: the order of its largest, and the sum of the weights that stay, with
// that of the chunk's own largest 2^kWeightBits.
struct Part {
  uint64_t sum;
  uint32_t order, unused;
};
// Its weight in the row, whose largest is `most`.
TC_HOST_DEVICE uint64_t share_of(const Part& part, float most, float scale) {
  return scaled(part.sum, (most - value_of(part.order)) * scale);
}

}  // namespace tensorcraft::kernel::sample

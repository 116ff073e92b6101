// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/wgmma.cuh"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

// Narrow floating-point formats by their definition: sign, exponent and mantissa taken apart.
namespace tensorcraft::test {

struct Format {
  int exponent_bits, mantissa_bits;
  bool has_infinity = true;  // e4m3 has none, and NaN only if all bits are ones
  int bits() const { return 1 + exponent_bits + mantissa_bits; }
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint32_t magnitude_mask() const { return (1u << (bits() - 1)) - 1; }
};
inline constexpr Format kF16{5, 10}, kBf16{8, 7}, kTf32{8, 10}, kE4m3{4, 3, false}, kE5m2{5, 2};

inline double decode(const Format& f, uint32_t bits) {
  const uint32_t magnitude = bits & f.magnitude_mask();
  const int exponent = int(magnitude >> f.mantissa_bits);
  const uint32_t mantissa = magnitude & ((1u << f.mantissa_bits) - 1);
  const bool top = exponent == (1 << f.exponent_bits) - 1;
  double value;
  if (top && f.has_infinity)
    value = mantissa ? std::nan("") : std::numeric_limits<double>::infinity();
  else if (!f.has_infinity && magnitude == f.magnitude_mask())
    value = std::nan("");
  else if (exponent == 0)
    value = std::ldexp(mantissa, 1 - f.bias() - f.mantissa_bits);
  else
    value = std::ldexp(mantissa + (1u << f.mantissa_bits), exponent - f.bias() - f.mantissa_bits);
  return bits >> (f.bits() - 1) & 1 ? -value : value;
}

// The bits of the largest finite value.
inline uint32_t largest(const Format& f) {
  return f.has_infinity ? (((1u << f.exponent_bits) - 1) << f.mantissa_bits) - 1
                        : f.magnitude_mask() - 1;
}

// The nearest value, half-way cases to even or away from zero; x is no NaN. Beyond the largest:
// that one if `saturate`, else infinity from half-way to what would come next.
inline uint32_t nearest(const Format& f, double x, bool saturate, bool away = false) {
  const uint32_t sign = std::signbit(x) ? 1u << (f.bits() - 1) : 0;
  const double magnitude = std::fabs(x);
  uint32_t low = 0, high = largest(f);
  if (magnitude >= decode(f, high)) {
    const double next = 2 * decode(f, high) - decode(f, high - 1);
    const bool beyond = magnitude >= (decode(f, high) + next) / 2;
    return sign | (beyond && !saturate ? high + 1 : high);
  }
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (decode(f, middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - decode(f, low), above = decode(f, high) - magnitude;
  if (below == above) return sign | (away || low % 2 == 1 ? high : low);
  return sign | (below < above ? low : high);
}

inline const Format& format_of(WgmmaType type) {
  static constexpr Format formats[] = {kF16, kBf16, kTf32, kE4m3, kE5m2};
  return formats[int(type)];
}

// The bits of an element of a product. exact: small integers, with which every partial sum is
// exact. random: any size near 1. special: zeros, subnormals, infinities and NaN among ones.
inline uint32_t random_element(std::mt19937& random, WgmmaType type, int kind) {
  const Format& f = format_of(type);
  const auto encode = [&](double x) {
    return nearest(f, x, true) << (type == WgmmaType::tf32 ? 13 : 0);
  };
  if (kind == 0) return encode(int(random() % 5) - 2);
  if (kind == 1) return encode(std::normal_distribution<double>()(random));
  const uint32_t infinity = largest(f) + 1, nan = f.magnitude_mask();
  const uint32_t smallest_normal = 1u << f.mantissa_bits, one = nearest(f, 1, true);
  const uint32_t special[] = {0,
                              1,
                              smallest_normal - 1,
                              smallest_normal,
                              one,
                              one + 1,
                              f.has_infinity ? infinity : largest(f),
                              nan};
  // Few are infinite or NaN, or every sum would be NaN.
  const uint32_t pick = random() % 64;
  const uint32_t bits = special[pick < 62 ? pick % 6 : pick - 56];
  return (bits | (random() % 2 ? 1u << (f.bits() - 1) : 0)) << (type == WgmmaType::tf32 ? 13 : 0);
}

// One instruction's sum of products and the old value: its bits, or how close they must be.
class Sum {
 public:
  explicit Sum(double old) : sum_(old), magnitude_(std::fabs(old)) {}
  // `magnitude`: what the product counts in the bound of the error.
  void add(double product, double magnitude) {
    sum_ += product;
    magnitude_ += magnitude;
  }
  uint32_t bits() const {
    return sum_ != sum_ ? 0x7fffffffu : __builtin_bit_cast(uint32_t, float(sum_));
  }
  double magnitude() const { return magnitude_; }

 private:
  double sum_, magnitude_;
};

}  // namespace tensorcraft::test

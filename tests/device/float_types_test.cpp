// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/device/tf32.cuh"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

// A format described by its numbers alone, so that the reference shares nothing with the code.
struct Format {
  int exponent_bits, mantissa_bits;
  bool saturates;
  bool has_infinity;
  uint32_t nan;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint32_t sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
  // The first magnitude that is no finite number.
  uint32_t finite_end() const {
    const uint32_t all_ones = ((1u << exponent_bits) - 1) << mantissa_bits;
    return has_infinity ? all_ones : sign_bit() - 1;
  }
  double decode(uint32_t magnitude) const {
    const uint32_t exponent = magnitude >> mantissa_bits;
    const uint32_t mantissa = magnitude & ((1u << mantissa_bits) - 1);
    if (exponent == 0) return std::ldexp(double(mantissa), 1 - bias() - mantissa_bits);
    return std::ldexp(double(mantissa + (1u << mantissa_bits)),
                      int(exponent) - bias() - mantissa_bits);
  }
};

constexpr Format kF16 = {5, 10, false, true, 0x7fff};
constexpr Format kBf16 = {8, 7, false, true, 0x7fff};
constexpr Format kE4m3 = {4, 3, true, false, 0x7f};
constexpr Format kE5m2 = {5, 2, true, true, 0x7f};

// Rounds by looking for the neighbours among all values of the format.
class Reference {
 public:
  explicit Reference(Format format) : format_(format) {
    for (uint32_t m = 0; m <= format.finite_end(); ++m) values_.push_back(format.decode(m));
  }
  // values()[finite_end] has the place of the next finite number: the rounding of overflow.
  const std::vector<double>& values() const { return values_; }

  uint32_t round(float x) const {
    if (std::isnan(x)) return format_.nan;
    const uint32_t sign = std::signbit(x) ? format_.sign_bit() : 0;
    const double magnitude = std::fabs(double(x));
    uint32_t nearest = format_.finite_end();
    if (magnitude < values_.back()) {
      const auto above = std::upper_bound(values_.begin(), values_.end(), magnitude);
      const uint32_t high = uint32_t(above - values_.begin()), low = high - 1;
      const double to_low = magnitude - values_[low], to_high = values_[high] - magnitude;
      nearest = to_low < to_high || (to_low == to_high && low % 2 == 0) ? low : high;
    }
    if (nearest == format_.finite_end() && format_.saturates) --nearest;
    return sign | nearest;
  }

 private:
  Format format_;
  std::vector<double> values_;
};

template <class T>
void expect_rounds_as(const Reference& reference, float x) {
  for (const float value : {x, -x}) {
    const uint32_t got = T(value).bits, expected = reference.round(value);
    ASSERT_EQ(got, expected) << "value " << std::hexfloat << value;
  }
}

template <class T>
void check_half_way_points(Format format) {
  const Reference reference(format);
  const auto& values = reference.values();
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    const float middle = float((values[i] + values[i + 1]) / 2);
    for (const float x : {float(values[i]), middle, std::nextafter(middle, 0.0f),
                          std::nextafter(middle, std::numeric_limits<float>::infinity())})
      ASSERT_NO_FATAL_FAILURE(expect_rounds_as<T>(reference, x));
  }
}

template <class T>
void check_random_and_special_values(Format format) {
  const Reference reference(format);
  using Limits = std::numeric_limits<float>;
  for (const float x : {0.0f, Limits::min(), Limits::denorm_min(), Limits::max(),
                        Limits::infinity(), Limits::quiet_NaN(), 1.0f, 65519.996f, 65520.0f, 448.0f,
                        464.0f, 480.0f, 57344.0f, 61440.0f})
    ASSERT_NO_FATAL_FAILURE(expect_rounds_as<T>(reference, x));
  std::mt19937 random(1);
  std::uniform_real_distribution<float> exponent(-30, 20);
  for (int i = 0; i < 1'000'000; ++i) {
    ASSERT_NO_FATAL_FAILURE(expect_rounds_as<T>(reference, bit_cast<float>(uint32_t(random()))));
    ASSERT_NO_FATAL_FAILURE(expect_rounds_as<T>(reference, std::exp2(exponent(random))));
  }
}

// Every pattern means what the format says, and comes back as itself.
template <class T>
void check_every_pattern(Format format) {
  using Bits = decltype(T::bits);
  for (uint32_t bits = 0; bits < 2 * format.sign_bit(); ++bits) {
    const T x = T::from_bits(Bits(bits));
    const uint32_t magnitude = bits & (format.sign_bit() - 1);
    const float value = float(x);
    if (magnitude < format.finite_end()) {
      ASSERT_EQ(std::fabs(double(value)), format.decode(magnitude)) << "pattern " << bits;
      ASSERT_EQ(std::signbit(value), (bits & format.sign_bit()) != 0) << "pattern " << bits;
      ASSERT_EQ(T(value).bits, bits);
    } else if (format.has_infinity && magnitude == format.finite_end()) {
      ASSERT_TRUE(std::isinf(value)) << "pattern " << bits;
      ASSERT_EQ(T(value).bits, format.saturates ? bits - 1 : bits);
    } else {
      ASSERT_TRUE(std::isnan(value)) << "pattern " << bits;
      ASSERT_EQ(T(value).bits, format.nan);
    }
  }
}

TEST(FloatTypes, EveryF16PatternGoesToFloatAndBack) { check_every_pattern<f16>(kF16); }
TEST(FloatTypes, EveryBf16PatternGoesToFloatAndBack) { check_every_pattern<bf16>(kBf16); }
TEST(FloatTypes, EveryE4m3PatternGoesToFloatAndBack) { check_every_pattern<e4m3>(kE4m3); }
TEST(FloatTypes, EveryE5m2PatternGoesToFloatAndBack) { check_every_pattern<e5m2>(kE5m2); }

TEST(FloatTypes, F16RoundsEveryHalfWayPointToEven) { check_half_way_points<f16>(kF16); }
TEST(FloatTypes, Bf16RoundsEveryHalfWayPointToEven) { check_half_way_points<bf16>(kBf16); }
TEST(FloatTypes, E4m3RoundsEveryHalfWayPointToEven) { check_half_way_points<e4m3>(kE4m3); }
TEST(FloatTypes, E5m2RoundsEveryHalfWayPointToEven) { check_half_way_points<e5m2>(kE5m2); }

TEST(FloatTypes, F16RoundsAsTheReference) { check_random_and_special_values<f16>(kF16); }
TEST(FloatTypes, Bf16RoundsAsTheReference) { check_random_and_special_values<bf16>(kBf16); }
TEST(FloatTypes, E4m3RoundsAsTheReference) { check_random_and_special_values<e4m3>(kE4m3); }
TEST(FloatTypes, E5m2RoundsAsTheReference) { check_random_and_special_values<e5m2>(kE5m2); }

TEST(FloatTypes, Float8SaturatesInsteadOfOverflowing) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(float(e4m3(infinity)), 448.0f);
  EXPECT_EQ(float(e4m3(-1e9f)), -448.0f);
  EXPECT_EQ(float(e5m2(infinity)), 57344.0f);
  EXPECT_EQ(float(e5m2(-1e9f)), -57344.0f);
}

TEST(FloatTypes, PairsPutTheFirstValueInTheUpperHalf) {
  EXPECT_EQ(ptx::cvt_rn_f16x2_f32(1.0f, 2.0f), 0x3c004000u);
  EXPECT_EQ(ptx::cvt_rn_bf16x2_f32(1.0f, 2.0f), 0x3f804000u);
  EXPECT_EQ(ptx::cvt_rn_satfinite_e4m3x2_f32(1.0f, 2.0f), 0x3840u);
  EXPECT_EQ(ptx::cvt_rn_satfinite_e5m2x2_f32(1.0f, 2.0f), 0x3c40u);
  EXPECT_EQ(ptx::cvt_rn_f16x2_e4m3x2(0x38ff), 0x3c007fffu);
}

// Ten bits of mantissa stay; a half-way value goes away from zero.
TEST(FloatTypes, Tf32RoundsHalfWayValuesAwayFromZero) {
  const auto rounded = [](float x) { return bit_cast<float>(ptx::cvt_rna_tf32_f32(x)); };
  constexpr float step = 0x1p-10f;
  EXPECT_EQ(rounded(1 + step), 1 + step);
  EXPECT_EQ(rounded(1 + step / 2), 1 + step);
  EXPECT_EQ(rounded(-1 - step / 2), -1 - step);
  EXPECT_EQ(rounded(1 + 0.49f * step), 1.0f);
  EXPECT_EQ(rounded(2 - step / 4), 2.0f);
  EXPECT_EQ(rounded(0x1p-133f), 0x1p-133f);
  EXPECT_TRUE(std::signbit(rounded(-0.0f)));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(rounded(-infinity), -infinity);
  EXPECT_EQ(rounded(std::numeric_limits<float>::max()), infinity);
  EXPECT_EQ(ptx::cvt_rna_tf32_f32(bit_cast<float>(0xffc01fffu)), 0xffc00000u);
}

// As cvt.rna.tf32, but for the numbers that would become infinite; NaN stays NaN.
TEST(FloatTypes, OperandsOfMmaRoundToTf32AndTheLargestAreCutOff) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float most = std::numeric_limits<float>::max();
  uint32_t random = 1;
  for (int i = 0; i < 100000; ++i) {
    random = random * 1664525u + 1013904223u;
    const float x = bit_cast<float>(random ^ random >> 13);
    if (!(std::fabs(x) >= 0x1p-126f && std::fabs(x) < 0x1.ffep127f)) continue;
    ASSERT_EQ(tf32_of(x), ptx::cvt_rna_tf32_f32(x)) << x;
  }
  EXPECT_EQ(tf32_of(most), 0x7f7fe000u);
  EXPECT_EQ(tf32_of(-most), 0xff7fe000u);
  EXPECT_EQ(tf32_of(0x1.ffep127f), 0x7f7fe000u);
  EXPECT_EQ(bit_cast<float>(tf32_of(infinity)), infinity);
  EXPECT_EQ(bit_cast<float>(tf32_of(-infinity)), -infinity);
  EXPECT_EQ(tf32_of(-0.0f), 0x80000000u);
  for (const uint32_t nan : {0x7fc00000u, 0x7fffffffu, 0x7f800001u, 0xff800001u})
    EXPECT_TRUE(std::isnan(bit_cast<float>(tf32_of(bit_cast<float>(nan))))) << nan;
}

TEST(FloatTypes, ConvertBetweenNarrowTypesRoundsOnce) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const f16 half = f16::from_bits(uint16_t(bits));
    ASSERT_EQ(convert<bf16>(half).bits, bf16(float(half)).bits);
    ASSERT_EQ(convert<e4m3>(half).bits, e4m3(float(half)).bits);
  }
  EXPECT_EQ(float(convert<bf16>(e4m3(0.4375f))), 0.4375f);
}

}  // namespace
}  // namespace tensorcraft

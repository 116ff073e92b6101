// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/quantize.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace tensorcraft {
namespace {

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

// Any bits: normal, subnormal, infinite and NaN alike.
float any_float(std::mt19937& random) { return bit_cast<float>(uint32_t(random())); }

template <class Code>
uint8_t bits_of(Code code) {
  return bit_cast<uint8_t>(code);
}

template <class Code>
void expect_code_of_the_division(float x, float by, float zero_point = 0) {
  const Divisor<Code> divisor(by, zero_point);
  const float taken = divisor.takes(std::abs(x)) ? x : divisor.prepared(x);
  const float quotient = divisor.divide(taken), exact = x / by;
  ASSERT_EQ(bits_of(to_code<Code, true>(quotient, zero_point)),
            bits_of(to_code<Code>(exact, zero_point)))
      << std::hexfloat << x << " / " << by << " + " << zero_point;
  if (zero_point == 0 && std::abs(exact) > 0x1p-30f && std::abs(exact) < 0x1p6f) {
    ASSERT_EQ(quotient, exact) << std::hexfloat << x << " / " << by;
  }
}

void expect_codes_of_the_division(float x, float by) {
  expect_code_of_the_division<e4m3>(x, by);
  expect_code_of_the_division<e5m2>(x, by);
  expect_code_of_the_division<int8_t>(x, by);
}

// Every float that is not negative and a multiple of 61 in bits, and all of the smallest.
TEST(CodeScale, IsADivision) {
  for (uint32_t bits = 0; bits < 0x7f800000u; bits += bits < 100000 ? 1 : 61) {
    const float x = bit_cast<float>(bits);
    ASSERT_EQ(divided(x, 448), x / 448) << std::hexfloat << x;
    ASSERT_EQ(divided(x, 57344), x / 57344) << std::hexfloat << x;
    ASSERT_EQ(divided(x, 255), x / 255) << std::hexfloat << x;
    ASSERT_EQ(divided(x, 127), x / 127) << std::hexfloat << x;
  }
  EXPECT_EQ(code_scale<e4m3>(0), 1) << "no scale is 0";
  EXPECT_TRUE(std::isnan(code_scale<int8_t>(kNotANumber)));
}

TEST(Divisor, GivesTheQuotientsAndCodesOfADivision) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 300000 && !testing::Test::HasFatalFailure(); ++i) {
    const float by = any_float(random);
    expect_codes_of_the_division(any_float(random), by);
    const float near = by * std::ldexp(1.0f, int(random() % 40) - 20);  // quotients near 1
    expect_codes_of_the_division(near * (1 + float(random() % 4096) / 4096), by);
    expect_codes_of_the_division(float(int(random() % 2000)) - 1000, float(1 + random() % 1000));
    expect_code_of_the_division<int8_t>(near, by, float(int(random() % 256)) - 128);
  }
  for (const float x :
       {0.0f, -0.0f, 1.0f, kInfinity, -kInfinity, kNotANumber, 1e-45f, -1e-45f, 3e38f, -3e38f})
    for (const float by : {0.0f, 1e-45f, 1e-30f, 1e-19f, 1.0f, -3.0f, 1e19f, 1e30f, 3e38f,
                           kInfinity, -kInfinity, kNotANumber}) {
      expect_codes_of_the_division(x, by);
      for (const float zero_point : {-128.0f, -1.0f, 127.0f})
        expect_code_of_the_division<int8_t>(x, by, zero_point);
    }
}

// A quotient decides a code next to the middle between two codes, an odd number times a power of
// two. There its rounding could be another one only if the divisor is a few units off a multiple of
// 2^-7: these are all of those, and every x whose quotient is within two floats of a middle.
TEST(Divisor, GivesTheCodesOfADivisionNextToEveryMiddle) {
  for (int multiple = 128; multiple < 256 && !testing::Test::HasFatalFailure(); ++multiple)
    for (int units = -8; units <= 8; ++units) {
      const float by =
          bit_cast<float>(bit_cast<uint32_t>(std::ldexp(float(multiple), -7)) + uint32_t(units));
      for (int middle = 1; middle < 512; middle += 2) {
        const uint32_t x = bit_cast<uint32_t>(by * float(middle));
        for (uint32_t near = x - 3; near != x + 4; ++near) {
          expect_code_of_the_division<e4m3>(bit_cast<float>(near), by);
          expect_code_of_the_division<e5m2>(bit_cast<float>(near), by * 0x1p-7f);
          expect_code_of_the_division<int8_t>(bit_cast<float>(near), by * 2);
        }
      }
    }
}

TEST(ToCode, RoundsIntegersToTheNearestEvenOneAndSaturates) {
  for (const float zero_point : {-128.0f, -7.0f, 0.0f, 100.0f, 127.0f})
    for (int quarters = -2400; quarters <= 2400; ++quarters) {
      const float x = 0.25f * float(quarters);
      const float whole = std::clamp(std::rint(x) + zero_point, -128.0f, 127.0f);
      ASSERT_EQ(float(to_code<int8_t>(x, zero_point)), whole) << x << " + " << zero_point;
    }
  EXPECT_EQ(to_code<int8_t>(kNotANumber, 5.0f), 0);
  EXPECT_EQ(to_code<int8_t>(kInfinity), 127);
  EXPECT_EQ(to_code<int8_t>(-kInfinity), -128);
  EXPECT_EQ(to_code<int8_t>(0.49999997f), 0);
  EXPECT_EQ(to_code<int8_t>(126.5f), 126);
}

}  // namespace
}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/activation.cuh"

#include <gtest/gtest.h>

#include <cmath>

namespace tensorcraft {
namespace {

double exact_gelu(double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }

// In units of 2^-24 of the result: 6 from the formula, and what the rounded argument of its
// exponential costs far from 0.
TEST(Gelu, KeepsItsRelativePrecisionOnBothSidesAndNearZero) {
  for (double x = -12.75; x < 20; x += 0x1p-10) {
    const auto rounded = float(x);
    const double exact = exact_gelu(rounded);
    ASSERT_NEAR(gelu(rounded), exact, std::fabs(exact) * (6 + 1.5 * x * x) * 0x1p-24) << x;
  }
  for (const float x : {1e-3f, 1e-10f, 1e-38f, 1e-44f, -1e-3f, -1e-10f, -1e-38f})
    ASSERT_NEAR(gelu(x), 0.5 * x * (1 + std::erf(x * std::sqrt(0.5))),
                std::fabs(x) * 3 * 0x1p-24 + 0x1p-149)
        << x;
}

TEST(Gelu, IsWhatTheFormulaSaysOfZerosInfinitiesAndNan) {
  EXPECT_EQ(gelu(kInfinity), kInfinity);
  EXPECT_TRUE(is_nan(gelu(-kInfinity)));
  EXPECT_TRUE(is_nan(gelu(kNan)));
  EXPECT_EQ(gelu(3e38f), 3e38f);
  EXPECT_EQ(gelu(-3e38f), 0.0f);
  EXPECT_EQ(gelu(0.0f), 0.0f);
  EXPECT_TRUE(std::signbit(gelu(-0.0f)));
}

}  // namespace
}  // namespace tensorcraft

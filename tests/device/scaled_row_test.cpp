// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/scaled_row.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tensorcraft {
namespace {

constexpr float kMost = std::numeric_limits<float>::max(),
                kInf = std::numeric_limits<float>::infinity(),
                kLeast = std::numeric_limits<float>::min();

TEST(ScaledRow, IsOrdinaryIfTheMeanOfSquaresIsANormalNumber) {
  for (const float mean : {kLeast, 1e-20f, 1.0f, 1e20f, kMost})
    EXPECT_TRUE(is_ordinary_rstd(1 / std::sqrt(mean))) << mean;
  for (const float mean : {0.0f, -1e-30f, kLeast / 8, kInf, std::nanf("")})
    EXPECT_FALSE(is_ordinary_rstd(1 / std::sqrt(mean))) << mean;
}

TEST(ScaledRow, SquaresOfScaledValuesAreFloats) {
  for (const float value : {1e-44f, kLeast, 1e-20f, 1e20f, kMost}) {
    const float scale = scale_of_row(value), square = value * scale * (value * scale);
    EXPECT_GE(square, kLeast) << value;
    EXPECT_LT(square * 0x1p31f, kMost) << value;
    EXPECT_EQ(scale * inverse_of_power(scale), 1.0f);
  }
}

TEST(ScaledRow, EpsStaysAbove0) {
  EXPECT_EQ(scaled_eps(0, 0x1p-80f), 0);
  EXPECT_GT(scaled_eps(1e-5f, 0x1p-80f), 0);
  EXPECT_EQ(scaled_eps(0x1p-130f, 0x1p100f), 0x1p70f);
}

}  // namespace
}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/transpose.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace tensorcraft::host {
namespace {

// Elements are their numbers; rows lie `gap` floats apart, which hold NaN.
std::vector<float> matrix(int64_t rows, int64_t columns, int64_t gap) {
  std::vector<float> x(size_t(rows * (columns + gap)), NAN);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) x[size_t(r * (columns + gap) + c)] = float(r * 1000 + c);
  return x;
}

TEST(Transpose, PutsEachElementInItsPlaceAndTouchesNoOther) {
  for (const int64_t rows : {0, 1, 3, 4, 15, 16, 17, 22, 48})
    for (const int64_t columns : {0, 1, 3, 4, 5, 18, 27}) {
      const auto from = matrix(rows, columns, 2);
      const int64_t stride = rows + 3;
      std::vector<float> to(size_t(columns * stride + 1), -1);
      EXPECT_TRUE(
          transpose(to.data(), {columns, stride, 0}, from.data(), columns + 2, rows, columns));
      for (int64_t c = 0; c < columns; ++c)
        for (int64_t r = 0; r < stride; ++r)
          ASSERT_EQ(to[size_t(c * stride + r)], r < rows ? float(r * 1000 + c) : -1)
              << rows << " x " << columns << ": " << r << " " << c;
      EXPECT_EQ(to.back(), -1);
    }
}

TEST(Transpose, SpreadsRunsOfColumns) {
  constexpr int64_t kRows = 19, kChannels = 5, kTaps = 9;
  const auto from = matrix(kRows, kChannels * kTaps, 0);
  std::vector<float> to(size_t(kRows * kChannels * kTaps), -1);
  const Spread spread{kTaps, kChannels * kRows, kRows};
  transpose(to.data(), spread, from.data(), kChannels * kTaps, kRows, kChannels * kTaps);
  for (int64_t channel = 0; channel < kChannels; ++channel)
    for (int64_t tap = 0; tap < kTaps; ++tap)
      for (int64_t r = 0; r < kRows; ++r)
        ASSERT_EQ(to[size_t((tap * kChannels + channel) * kRows + r)],
                  float(r * 1000 + channel * kTaps + tap));
}

TEST(Transpose, TellsWhereverAnElementIsNotFinite) {
  constexpr int64_t kRows = 22, kColumns = 11;
  std::vector<float> to(size_t(kRows * kColumns));
  const auto is_finite = [&](const std::vector<float>& x) {
    return transpose(to.data(), {kColumns, kRows, 0}, x.data(), kColumns, kRows, kColumns);
  };
  auto x = matrix(kRows, kColumns, 0);
  x[0] = std::numeric_limits<float>::max();
  x[1] = -std::numeric_limits<float>::denorm_min();
  EXPECT_TRUE(is_finite(x));
  EXPECT_TRUE(are_finite(x.data(), kRows * kColumns));
  for (float& element : x)
    for (const float value : {INFINITY, -INFINITY, NAN}) {
      const float before = std::exchange(element, value);
      ASSERT_FALSE(is_finite(x)) << value << " at " << &element - x.data();
      ASSERT_FALSE(are_finite(x.data(), kRows * kColumns));
      element = before;
    }
}

}  // namespace
}  // namespace tensorcraft::host

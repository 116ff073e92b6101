// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/line_kernels.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tensorcraft::host {
namespace {

std::vector<float> normal(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> all(n);
  for (float& x : all) x = distribution(random);
  return all;
}

constexpr int kRows = 3, kPitch = 131;  // what lies between rows is not touched
constexpr int kLengths[] = {0, 1, 3, 4, 15, 16, 17, 33, 64, 100, 130};

struct Data {
  std::vector<float> rows = normal(kRows * kPitch, 1), lines = normal(kLines * kPitch, 2);
  std::vector<float> scales = normal(kRows * 8, 3);
  Lines at = {&lines[0], &lines[kPitch], &lines[2 * kPitch], &lines[3 * kPitch]};
};

TEST(LineKernels, DotAgreesWithDoubleAndGivesARowTheBitsItHasAlone) {
  Data d;
  for (const LineKernels& kernels : all_line_kernels())
    for (const int n : kLengths) {
      std::vector<float> sums(kRows * 8, std::numeric_limits<float>::quiet_NaN()), alone(kLines);
      kernels.dot({sums.data(), 8}, {d.rows.data(), kPitch}, kRows, d.at, n);
      for (int row = 0; row < kRows; ++row) {
        kernels.dot({alone.data(), kLines}, {&d.rows[size_t(row) * kPitch], kPitch}, 1, d.at, n);
        for (int l = 0; l < kLines; ++l) {
          double expected = 0;
          for (int i = 0; i < n; ++i) expected += double(d.rows[row * kPitch + i]) * d.at[l][i];
          ASSERT_NEAR(sums[row * 8 + l], expected, 1e-5 * (n + 1)) << n;
          ASSERT_EQ(sums[row * 8 + l], alone[l]) << n;
          ASSERT_TRUE(std::isnan(sums[row * 8 + kLines + l])) << n;
        }
      }
    }
}

TEST(LineKernels, AddScaledAgreesWithDoubleAndGivesARowTheBitsItHasAlone) {
  Data d;
  for (const LineKernels& kernels : all_line_kernels())
    for (const int n : kLengths) {
      std::vector<float> y = d.rows, alone = d.rows;
      kernels.add_scaled({y.data(), kPitch}, {d.scales.data(), 8}, kRows, d.at, n);
      for (int row = 0; row < kRows; ++row) {
        float* const scales = &d.scales[size_t(row) * 8];
        kernels.add_scaled({&alone[size_t(row) * kPitch], kPitch}, {scales, 8}, 1, d.at, n);
        for (int i = 0; i < kPitch; ++i) {
          double expected = d.rows[row * kPitch + i];
          for (int l = 0; l < kLines && i < n; ++l) expected += double(scales[l]) * d.at[l][i];
          ASSERT_NEAR(y[row * kPitch + i], expected, 1e-5) << n;
          ASSERT_TRUE(i < n || y[row * kPitch + i] == d.rows[row * kPitch + i]) << n;
        }
      }
      ASSERT_EQ(y, alone) << n;
    }
}

}  // namespace
}  // namespace tensorcraft::host

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/tensor_core.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tensorcraft::simt {
namespace {

TEST(SimtTensorCore, ReadsTheValueOfEachFormat) {
  EXPECT_EQ(element_value(WgmmaType::f16, 0xc500), -5.0);
  EXPECT_EQ(element_value(WgmmaType::f16, 0x0001), 0x1p-24);
  EXPECT_EQ(element_value(WgmmaType::bf16, 0x3fc0), 1.5);
  EXPECT_EQ(element_value(WgmmaType::e4m3, 0x7e), 448);
  EXPECT_EQ(element_value(WgmmaType::e5m2, 0x7b), 57344);
  EXPECT_EQ(element_value(WgmmaType::e5m2, 0xfc), -std::numeric_limits<double>::infinity());
}

TEST(SimtTensorCore, IgnoresTheBitsBeyondTf32) {
  EXPECT_EQ(element_value(WgmmaType::tf32, 0x3f801fff), 1.0);
  EXPECT_EQ(element_value(WgmmaType::tf32, 0x3f802000), 1 + 0x1p-10);
}

TEST(SimtTensorCore, RoundsASumOnce) {
  const double a[] = {1, 1, 1}, b[] = {1, 0x1p-24, 0x1p-40};
  double sum = 0;
  multiply_add(a, b, &sum, 1, 1, 3);
  EXPECT_EQ(round_sum(sum), 1 + 0x1p-23f);  // a running float sum would lose both small terms
  EXPECT_EQ(bit_cast<uint32_t>(round_sum(std::nan(""))), 0x7fffffffu);
  EXPECT_EQ(round_sum(1e300), std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace tensorcraft::simt

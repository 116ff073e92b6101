// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/conv_activation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tensorcraft {
namespace {

TEST(ConvActivations, RowsAreTheFunctionInDouble) {
  using enum ConvActivation;
  for (const ConvActivation activation : {none, relu, relu6, gelu, silu, hard_swish}) {
    std::vector<float> row;
    for (int i = -60; i <= 60; ++i) row.push_back(0.2f * float(i));
    const std::vector<float> x = row;
    host::row_activate(activation, row.data(), int64_t(row.size()));
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(row[i], host::activate(activation, double(x[i])), 4e-6) << x[i];
  }
}

TEST(ConvActivations, ANaNStays) {
  using enum ConvActivation;
  for (const ConvActivation activation : {none, relu, relu6, gelu, silu, hard_swish}) {
    float x = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(host::activate(activation, double(x))));
    host::row_activate(activation, &x, 1);
    EXPECT_TRUE(std::isnan(x));
  }
}

}  // namespace
}  // namespace tensorcraft

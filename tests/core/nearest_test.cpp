// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/nearest.hpp"

#include <gtest/gtest.h>

#include <array>

namespace tensorcraft {
namespace {

constexpr std::array<std::string_view, 5> kKnown = {"softmax", "log_softmax", "sum", "max", "gemm"};

TEST(Nearest, IsTheWordThatASlipWouldMake) {
  EXPECT_EQ(nearest("sofmax", kKnown), "softmax");    // left out
  EXPECT_EQ(nearest("softmaxx", kKnown), "softmax");  // put in
  EXPECT_EQ(nearest("sotfmax", kKnown), "softmax");   // exchanged
  EXPECT_EQ(nearest("logsoftmax", kKnown), "log_softmax");
  EXPECT_EQ(nearest("SUM", kKnown), "sum");
  EXPECT_EQ(nearest("gem", kKnown), "gemm");
}

TEST(Nearest, IsEmptyIfNothingIsAlike) {
  EXPECT_EQ(nearest("attention", kKnown), "");
  EXPECT_EQ(nearest("", kKnown), "");
  EXPECT_EQ(nearest("x", kKnown), "");
  EXPECT_EQ(nearest(std::string(100000, 's'), kKnown), "");
  EXPECT_EQ(nearest("softmax", {}), "");
}

TEST(Nearest, EndsAnError) {
  EXPECT_EQ(did_you_mean("sofmax", kKnown), "; did you mean softmax?");
  EXPECT_EQ(did_you_mean("attention", kKnown), "");
}

}  // namespace
}  // namespace tensorcraft

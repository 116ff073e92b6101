// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/layout.hpp"

#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

TEST(Layout, GivesTheStridesOfEachLayout) {
  EXPECT_EQ(layout_strides(TensorLayout::NCHW, {2, 3, 4, 5}), (Dims{60, 20, 5, 1}));
  EXPECT_EQ(layout_strides(TensorLayout::NHWC, {2, 3, 4, 5}), (Dims{60, 1, 15, 3}));
  EXPECT_EQ(layout_strides(TensorLayout::NC, {2, 3}), (Dims{3, 1}));
  EXPECT_EQ(layout_strides(TensorLayout::NLC, {2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(layout_strides(TensorLayout::BNHD, {2, 3, 4, 5}), (Dims{60, 20, 5, 1}));
}

TEST(Layout, RefusesAShapeOfAnotherRank) {
  test::expect_error(
      ErrorKind::value, [] { layout_strides(TensorLayout::NC, {2, 3, 4}); },
      "layout NC needs a shape of 2 dimensions, got [2, 3, 4]");
}

}  // namespace
}  // namespace tensorcraft

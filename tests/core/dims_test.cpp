// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/dims.hpp"

#include "tests/support/expect_error.hpp"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using test::expect_error;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(Dims, PrintAndCompareByTheirValues) {
  EXPECT_EQ(join(Dims{32, 128}), "[32, 128]");
  EXPECT_EQ(join(Dims{}), "[]");
  EXPECT_EQ((Dims{1, 2}), (Dims{1, 2}));
  EXPECT_NE((Dims{1, 2}), (Dims{1, 2, 1}));
  EXPECT_NE((Dims{1, 2}), (Dims{1, 3}));
}

TEST(Dims, HoldEightValuesAndNoMore) {
  Dims d{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(d.back(), 8);
  EXPECT_THROW(d.push_back(9), Error);
  EXPECT_THROW((Dims{1, 2, 3, 4, 5, 6, 7, 8, 9}), Error);
}

TEST(Dims, CountElementsWithoutOverflow) {
  EXPECT_EQ(num_elements({}), 1);
  EXPECT_EQ(num_elements({2, 3, 4}), 24);
  EXPECT_EQ(num_elements({kMax, 1}), kMax);
  EXPECT_EQ(num_elements({kMax, 2, 0}), 0);
  EXPECT_EQ(num_elements({0, kMax, kMax}), 0);
  EXPECT_THROW(num_elements({kMax, 2}), Error);
  EXPECT_THROW(num_elements({3, -1}), Error);
  EXPECT_THROW(num_elements({0, -1}), Error);
}

TEST(Dims, GiveRowMajorStrides) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), Dims{});
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (Dims{4, 4, 1}));
}

TEST(Dims, GiveSomeStridesForAHugeEmptyShape) {
  EXPECT_EQ(contiguous_strides({0, kMax, kMax})[2], 1);
}

TEST(Dims, BroadcastAsNumpyDoes) {
  EXPECT_EQ(broadcast_shapes({2, 1, 4}, {3, 1}), (Dims{2, 3, 4}));
  EXPECT_EQ(broadcast_shapes({3, 1}, {2, 1, 4}), (Dims{2, 3, 4}));
  EXPECT_EQ(broadcast_shapes({}, {5}), (Dims{5}));
  EXPECT_EQ(broadcast_shapes({0, 3}, {1, 3}), (Dims{0, 3}));
  EXPECT_THROW(broadcast_shapes({2}, {3}), Error);
  EXPECT_THROW(broadcast_shapes({0}, {3}), Error);
}

TEST(Dims, NormaliseAnAxisFromEitherEnd) {
  EXPECT_EQ(normalize_axis(-1, 3, "sum"), 2);
  EXPECT_EQ(normalize_axis(0, 3, "sum"), 0);
  const auto past_the_end = [] { normalize_axis(5, 2, "softmax"); };
  expect_error(ErrorKind::axis, past_the_end, "softmax: axis must be in [-2, 2), got 5");
  EXPECT_THROW(normalize_axis(-3, 2, "softmax"), Error);
}

}  // namespace
}  // namespace tensorcraft

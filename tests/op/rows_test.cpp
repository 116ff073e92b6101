// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/rows.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::op {
namespace {

TEST(RowMap, MergesAxesThatFollowEachOtherInMemory) {
  float data[24];
  const TensorView dense(data, DType::float32, {2, 3, 4});
  EXPECT_EQ(element_map(dense).axes, 1);
  EXPECT_EQ(element_map(dense.transpose(1, 2)).axes, 3);
  const RowMap rows = row_map(dense, 1);
  EXPECT_EQ(rows.offset(0), 0);
  EXPECT_EQ(rows.offset(3), 3);
  EXPECT_EQ(rows.offset(4), 12);
}

TEST(RowMap, HoldsEveryAxisOfTheHighestRank) {
  static float data[6561];
  const TensorView dense(data, DType::float32, {3, 3, 3, 3, 3, 3, 3, 3});
  TensorView view = dense;
  for (int axis = 0; axis < view.rank(); ++axis) view = view.slice(axis, 0, 2);
  const RowMap map = element_map(view);
  EXPECT_EQ(map.axes, kMaxRank);
  EXPECT_EQ(map.offset(255), 3280);  // the last element: 1 + 3 + ... + 3^7
}

}  // namespace
}  // namespace tensorcraft::op

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/checks/rows.hpp"

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

struct TwoTensors {
  enum { kX, kOut, kTensors };
  int64_t step[kTensors];
};

TEST(Nested, KeepsTheStepsOfItsMaps) {
  float data[24];
  const TensorView dense(data, DType::float32, {2, 3, 4});
  auto p = with_maps(TwoTensors{}, row_map(dense, 2), RowMap{});
  const TwoTensors& flat = p;
  EXPECT_FALSE(p.is_nested());
  EXPECT_EQ(row_offset(flat, TwoTensors::kX, 5), 20);
  EXPECT_EQ(row_offset(flat, TwoTensors::kOut, 5), 0);
  EXPECT_EQ(row_offset(p, TwoTensors::kX, 5), 20);
  p.set_map(TwoTensors::kX, row_map(dense, 1));  // rows of (2, 4): the last axis is not merged
  EXPECT_TRUE(p.is_nested());
  for (int64_t row = 0; row < 8; ++row)
    EXPECT_EQ(row_offset(p, TwoTensors::kX, row), row / 4 * 12 + row % 4) << row;
  p.set_map(TwoTensors::kX, {});
  EXPECT_EQ(row_offset(flat, TwoTensors::kX, 5), 0);
}

}  // namespace
}  // namespace tensorcraft::op

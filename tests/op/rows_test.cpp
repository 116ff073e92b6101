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

TEST(Rows, AreAlignedWhereEveryRowStartsAtABoundary) {
  alignas(64) float data[256] = {};
  const auto view = [&](std::initializer_list<int64_t> shape,
                        std::initializer_list<int64_t> strides, int offset = 0) {
    return TensorView(data + offset, DType::float32, Dims(shape), Dims(strides), Device::cpu());
  };
  EXPECT_TRUE(rows_aligned(view({3, 5}, {8, 1}), 1, 16));
  EXPECT_FALSE(rows_aligned(view({3, 5}, {6, 1}), 1, 16)) << "rows of 24 bytes";
  EXPECT_TRUE(rows_aligned(view({1, 5}, {6, 1}), 1, 16)) << "one row";
  EXPECT_FALSE(rows_aligned(view({3, 5}, {8, 1}, 1), 1, 16)) << "starts at 4 bytes";
  EXPECT_FALSE(rows_aligned(view({2, 3, 5}, {26, 8, 1}), 2, 16)) << "an outer axis";
  EXPECT_TRUE(rows_aligned(view({3, 5}, {-8, 1}, 64), 1, 16)) << "backwards";
  EXPECT_TRUE(has_unit_rows(std::nullopt) && has_aligned_rows(std::nullopt));
  EXPECT_FALSE(has_unit_rows(view({3, 5}, {16, 2})));
  EXPECT_TRUE(has_unit_rows(view({3, 1}, {16, 2}))) << "no neighbours";
}

}  // namespace
}  // namespace tensorcraft::op

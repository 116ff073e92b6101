// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/requirements.hpp"

#include "tensorcraft/ops/all.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tensorcraft {
namespace {

TEST(Requirements, AreComprehensive) {
  const RequirementMatrix matrix = define_comprehensive_requirements();
  EXPECT_EQ(matrix.precisions.size(), 5u);
  EXPECT_EQ(matrix.layouts.size(), 4u);
  EXPECT_EQ(matrix.modes.size(), 4u);
  EXPECT_EQ(std::ranges::count(matrix.modes, ComputeMode::GRADIENT_COMPUTATION), 0);
  ASSERT_EQ(matrix.sizes.size(), 9u);
  EXPECT_EQ(matrix.sizes.front(), (std::array<int64_t, 3>{64, 64, 64}));
  EXPECT_EQ(matrix.sizes.back(), (std::array<int64_t, 3>{16384, 16384, 16384}));
  EXPECT_EQ(matrix.architectures, (std::vector<int>{80, 86, 89, 90}));
  EXPECT_EQ(matrix.ratio, 0.9);
}

// Dense products and attention are operators today; grouped and masked products will be.
TEST(Requirements, DenseAndAttentionHaveOperators) {
  EXPECT_EQ(find_operator("gemm").description().name, "gemm");
  EXPECT_EQ(find_operator("attention").description().name, "attention");
}

}  // namespace
}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/launch/copy_step.hpp"

#include "tensorcraft/device/copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace tensorcraft::op {
namespace {

TEST(CopyStep, IsAddedInFrontUnlessThereIsNothingToCopy) {
  const jit::Rung main{"toy", "main", "", ""}, copy{"toy", "copy", "", ""};
  std::vector<int16_t> memory(12), other(12);
  const TensorView from(memory.data(), DType::float16, {2, 3}, {6, 2}, Device::cpu()),
      to(other.data(), DType::float16, {2, 3});
  Plan plan;
  Step step;
  step.kernel.rung = &main;
  plan.add(step, int64_t(1));
  add_copy(plan, copy, from, from);
  const TensorView none(other.data(), DType::float16, {0, 3});
  add_copy(plan, copy, none, from.slice(0, 0, 0));
  ASSERT_EQ(plan.steps().size(), 1u);
  add_copy(plan, copy, to, from);
  ASSERT_EQ(plan.steps().size(), 2u);
  EXPECT_EQ(plan.first().kernel.rung, &copy);
  EXPECT_EQ(plan.first().kernel.types[0], DType::int16);
  const auto& p = plan.params_as<kernel::CopyParams>(plan.first());
  EXPECT_EQ(p.count, 6);
  EXPECT_EQ(p.from_map.offset(4), 8);
  EXPECT_EQ(p.to_map.offset(4), 4);
}

}  // namespace
}  // namespace tensorcraft::op

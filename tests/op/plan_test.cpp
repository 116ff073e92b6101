// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/plan.hpp"

#include "tensorcraft/core/error.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::op {
namespace {

struct OneSize {
  int64_t size;
};

TEST(Plan, HasAnArgumentForEachStepOrOneForSeveral) {
  const jit::Rung rung{"toy", "rung", "", ""};
  Step step;
  step.kernel.rung = &rung;
  Plan plan;
  plan.add(step, OneSize{1});
  plan.add(step);
  plan.add(step, OneSize{3});
  const auto size_of = [&](const Plan& p, size_t i) {
    OneSize params;
    std::memcpy(&params, p.params(p.steps()[i]), sizeof(params));
    return params.size;
  };
  plan.set_params(2, OneSize{4});
  const Plan copy = plan;
  EXPECT_EQ(size_of(copy, 0), 1);
  EXPECT_EQ(size_of(copy, 1), 1);
  EXPECT_EQ(size_of(copy, 2), 4);
  EXPECT_EQ(copy.steps()[2].params_at % 64, 0u);
  plan.add(step);
  EXPECT_THROW(plan.add(step), Error) << "four steps at most";
}

}  // namespace
}  // namespace tensorcraft::op

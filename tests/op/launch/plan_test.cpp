// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/launch/plan.hpp"

#include "tensorcraft/core/error.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

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

TEST(Plan, PreparesForItsMainStep) {
  const jit::Rung main{"toy", "main", "", ""}, first{"toy", "first", "", ""},
      second{"toy", "second", "", ""}, after{"toy", "after", "", ""};
  const auto step = [](const jit::Rung& rung) {
    Step s;
    s.kernel.rung = &rung;
    return s;
  };
  Plan plan;
  plan.add(step(main), OneSize{1});
  plan.add(step(after));
  plan.add_preparation(step(first), OneSize{2});
  plan.add_preparation(step(second), OneSize{3}).workspace_at = 0;
  const Plan copy = plan;
  std::vector<std::string> names;
  for (const Step& s : copy.steps()) names.push_back(s.kernel.rung->name);
  EXPECT_EQ(names, (std::vector<std::string>{"first", "second", "main", "after"}));
  EXPECT_EQ(copy.main().kernel.rung, &main);
  EXPECT_EQ(copy.steps()[1].workspace_at, 0);
  for (const auto& [i, size] : {std::pair(0, 2), {1, 3}, {2, 1}, {3, 1}})
    EXPECT_EQ(copy.params_as<OneSize>(copy.steps()[size_t(i)]).size, size) << i;
}

}  // namespace
}  // namespace tensorcraft::op

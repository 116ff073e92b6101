// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/launch/launch.hpp"

#include "tensorcraft/simt/instance.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace tensorcraft::op {
namespace {

struct SeenParams {
  std::array<int, 3>* seen;
  const unsigned char* workspace;
  const uint32_t* counter;
};
struct SeenConfig {
  int unused = 0;
};

// Stores the bytes of the workspace that are not 0, and the counter.
void see(const void* params) {
  const SeenParams& p = *static_cast<const SeenParams*>(params);
  if (threadIdx.x != 0) return;
  int set = 0;
  for (int i = 0; i < 64; ++i) set += p.workspace[i] != 0;
  *p.seen = {set, p.counter ? int(*p.counter) : -1, 1};
}
constexpr simt::Instance kSeeing[] = {
    {"test::see", {DType::int32}, 1, config_bytes(SeenConfig{}), see}};
const simt::KnownInstances kKnownToSee([](const simt::Wanted& wanted) {
  return simt::find_in(kSeeing, wanted);
});
constexpr ConfigField kSeenFields[] = {{"unused"}};
const jit::Rung kSee{"test", "see", "test.cuh", "test::see", "SeenConfig", kSeenFields};

Plan plan_that_sees(std::array<int, 3>& seen) {
  Step step;
  step.kernel = {.rung = &kSee, .types = {DType::int32}, .num_types = 1, .threads = 32};
  step.kernel.config = config_bytes(SeenConfig{});
  step.launch = {.grid = {1}, .block = {32}};
  step.workspace_at = offsetof(SeenParams, workspace);
  step.counter_at = offsetof(SeenParams, counter);
  Plan plan;
  plan.add(step, SeenParams{&seen, nullptr, nullptr});
  plan.workspace_bytes = plan.workspace_zeroed = 64;
  return plan;
}

TEST(LaunchPlan, BringsAZeroedWorkspaceAndCounterAndLeavesThePlanAsItWas) {
  std::array<int, 3> seen{-1, -1, 0};
  const Plan plan = plan_that_sees(seen);
  for (int launch = 0; launch < 2; ++launch) {
    seen = {-1, -1, 0};
    launch_plan(plan, Device::simt(), {}, "see");
    EXPECT_EQ(seen, (std::array{0, 0, 1}));
  }
  Plan copy = plan;
  EXPECT_EQ(copy.params_as<SeenParams>(copy.first()).workspace, nullptr);
  EXPECT_EQ(copy.params_as<SeenParams>(copy.first()).counter, nullptr);
}

TEST(LaunchPlan, RunsOnTheStreamThatIsGiven) {
  const StreamRef given = StreamRef::default_stream(3);
  EXPECT_EQ(resolve_stream(given, Device::cuda(3)).device(), 3);
  EXPECT_EQ(resolve_stream(std::nullopt, Device::cpu()), StreamRef());
}

}  // namespace
}  // namespace tensorcraft::op

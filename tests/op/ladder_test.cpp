// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/ladder.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/simt/instance.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::op {
namespace {

using test::expect_error;

// A ladder whose best rung needs a newer GPU, and is no gain for few elements.
struct Nothing {
  int64_t size = 1000;
};
struct NoOptions {};
struct ToyParams {
  int64_t size;
};
struct ToyConfig {
  int threads = 64;
};
constexpr ConfigField kToyFields[] = {{"threads"}};
Choice<ToyConfig> warpgroup(const ToyParams& p, const NoOptions&, const Gpu& gpu) {
  if (!gpu.has_clusters()) return refuse("needs sm_90");
  return {Start<ToyConfig>{{.threads = 128}, 1}, p.size < 10 ? "few elements" : ""};
}
Choice<ToyConfig> warp(const ToyParams&, const NoOptions&, const Gpu&) {
  return Start<ToyConfig>{{}, 2};
}
constexpr Rung<ToyParams, NoOptions, ToyConfig> kToyRungs[] = {
    {.name = "warpgroup", .file = "1.cuh", .idea = "needs a newer GPU", .choose = warpgroup},
    {.name = "warp", .file = "0.cuh", .idea = "runs everywhere", .choose = warp}};
RungCall<ToyParams, NoOptions> toy_call(const Nothing& q) { return {{q.size}, {}, {}}; }
simt::OperatorInstances no_instances() { return {}; }
const HostVariant<Nothing> kToyHost[] = {
    {.name = "few",
     .idea = "takes few elements",
     .run = [](const Nothing&) {},
     .refusal = [](const Nothing& q) -> std::string_view { return q.size < 10 ? "" : "many"; }},
    {.name = "host", .idea = "not on a GPU", .run = [](const Nothing&) {}}};
const Definition<Nothing, NoOptions> kToy{
    .name = "toy",
    .ladder = make_ladder<toy_call, kToyRungs, no_instances>("toy", kToyFields),
    .host = kToyHost};

TEST(Choose, TakesTheBestNamedVariantOfEachArchitecture) {
  const DeviceInfo ampere = device_info_of_arch("sm_80"), hopper = device_info_of_arch("sm_90");
  EXPECT_EQ(choose_rung(kToy, {}, ampere, {}).variant, "warp");
  EXPECT_EQ(choose_rung(kToy, {}, hopper, {}).variant, "warpgroup");
  EXPECT_EQ(choose_rung(kToy, {}, hopper, "warp").variant, "warp");
  expect_error(
      ErrorKind::unsupported, [&] { choose_rung(kToy, {}, ampere, "warpgroup"); },
      "toy: variant warpgroup does not accept this problem\n  warpgroup: needs sm_90");
}

TEST(Choose, LeavesACallToALaterRungThatIsBetterUnlessOneIsNamed) {
  const DeviceInfo hopper = device_info_of_arch("sm_90");
  EXPECT_EQ(choose_rung(kToy, {.size = 5}, hopper, {}).variant, "warp");
  EXPECT_EQ(choose_rung(kToy, {.size = 5}, hopper, "warpgroup").variant, "warpgroup");
  const auto all = consider(kToy, Nothing{.size = 5}, hopper);
  EXPECT_TRUE(all[0].accepted);
  EXPECT_EQ(all[0].reason, "few elements");
}

TEST(Choose, AsksHostVariantsOnTheHostAlone) {
  const DeviceInfo& cpu = device_info(Device::cpu());
  EXPECT_EQ(choose_on_host(kToy, {}, {}).name, "host");
  EXPECT_EQ(choose_on_host(kToy, {.size = 5}, {}).name, "few");
  EXPECT_EQ(consider(kToy, Nothing{}, cpu).size(), 2u);
  expect_error(
      ErrorKind::unsupported, [&] { choose_on_host(kToy, {}, "few"); },
      "toy: variant few does not accept this problem\n  few: many");
}

TEST(Choose, GivesThePlanOfTheRungThatWasChosen) {
  const Plan plan = choose_rung(kToy, {}, device_info_of_arch("sm_90"), {}).plan;
  ASSERT_EQ(plan.steps().size(), 1u);
  EXPECT_EQ(plan.first().launch.block.x, 128u);
  EXPECT_EQ(config_text(plan.first()), "threads = 128");
  EXPECT_EQ(plan.first().kernel.rung->function, "tensorcraft::kernel::toy::Warpgroup::run");
  EXPECT_EQ(plan.first().kernel.rung->header, "tensorcraft/ops/toy/1.cuh");
}

}  // namespace
}  // namespace tensorcraft::op

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/choice/ladder.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

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
// It would be as fast with fewer threads; a rung that refuses weighs nothing.
void weigh_warpgroup(Candidates<ToyConfig>& all, const ToyParams&, const NoOptions&,
                     const Gpu& gpu) {
  if (!gpu.has_clusters()) return;
  all.add({{.threads = 64}, 2.5, 3, 0.5});
  all.add({{.threads = 128}, 2, 1, 0.25});
}
constexpr Rung<ToyParams, NoOptions, ToyConfig> kToyRungs[] = {
    {.name = "warpgroup",
     .file = "1.cuh",
     .idea = "needs a newer GPU",
     .choose = warpgroup,
     .weigh = weigh_warpgroup},
    {.name = "warp", .file = "0.cuh", .idea = "runs everywhere", .choose = warp}};
RungCall<ToyParams, NoOptions> toy_call(const Nothing& q) { return {{q.size}, {}, {}}; }
const HostVariant<Nothing> kToyHost[] = {
    {.name = "few",
     .idea = "takes few elements",
     .run = [](const Nothing&) {},
     .refusal = [](const Nothing& q) -> std::string_view { return q.size < 10 ? "" : "many"; }},
    {.name = "host", .idea = "not on a GPU", .run = [](const Nothing&) {}}};
const Definition<Nothing, NoOptions> kToy{
    .name = "toy", .ladder = make_ladder<toy_call, kToyRungs>("toy", kToyFields), .host = kToyHost};

TEST(Choose, TakesTheBestNamedVariantOfEachArchitecture) {
  const DeviceInfo ampere = device_info_of_arch("sm_80"), hopper = device_info_of_arch("sm_90");
  EXPECT_EQ(choose_rung(kToy, {}, ampere, {}).variant, "warp");
  EXPECT_EQ(choose_rung(kToy, {}, hopper, {}).variant, "warpgroup");
  EXPECT_EQ(choose_rung(kToy, {}, hopper, "warp").variant, "warp");
  expect_error(
      ErrorKind::unsupported, [&] { choose_rung(kToy, {}, ampere, "warpgroup"); },
      "toy: variant warpgroup does not accept this problem\n  warpgroup: needs sm_90");
}

// Rungs whose starts have as many blocks, or bytes of shared memory, as the call has elements.
constexpr Rung<ToyParams, NoOptions, ToyConfig> kSizedRungs[] = {
    {.name = "shared",
     .file = "1.cuh",
     .choose = [](const ToyParams& p, const NoOptions&, const Gpu&) -> Choice<ToyConfig> {
       return Start<ToyConfig>{.blocks = 1,
                               .shared_bytes = int(std::min<int64_t>(p.size, 1 << 30))};
     }},
    {.name = "blocks",
     .file = "0.cuh",
     .choose = [](const ToyParams& p, const NoOptions&, const Gpu&) -> Choice<ToyConfig> {
       return Start<ToyConfig>{.blocks = p.size};
     }}};
const Definition<Nothing, NoOptions> kSized{
    .name = "sized", .ladder = make_ladder<toy_call, kSizedRungs>("sized", kToyFields)};

TEST(Choose, RefusesAStartThatTheDeviceHasNoRoomFor) {
  const DeviceInfo hopper = device_info_of_arch("sm_90");
  const int64_t room = int64_t(hopper.shared_bytes_per_block);
  ASSERT_GT(room, 0);
  EXPECT_EQ(choose_rung(kSized, {.size = room}, hopper, {}).variant, "shared");
  EXPECT_EQ(choose_rung(kSized, {.size = room + 1}, hopper, {}).variant, "blocks");
  EXPECT_EQ(choose_rung(kSized, {.size = kMaxBlocks}, hopper, {}).variant, "blocks");
  expect_error(
      ErrorKind::unsupported, [&] { choose_rung(kSized, {.size = kMaxBlocks + 1}, hopper, {}); },
      "sized: no variant accepts this problem\n"
      "  shared: needs more shared memory than a block has\n"
      "  blocks: needs more blocks than a grid has");
}

TEST(Choose, LeavesACallToALaterRungThatIsBetterUnlessOneIsNamed) {
  const DeviceInfo hopper = device_info_of_arch("sm_90");
  EXPECT_EQ(choose_rung(kToy, {.size = 5}, hopper, {}).variant, "warp");
  EXPECT_EQ(choose_rung(kToy, {.size = 5}, hopper, "warpgroup").variant, "warpgroup");
  const auto all = consider(kToy, Nothing{.size = 5}, hopper);
  EXPECT_TRUE(all[0].accepted);
  EXPECT_EQ(all[0].reason, "few elements");
}

TEST(Choose, SaysWhatItWeighedAndWhichWon) {
  const auto all = consider(kToy, Nothing{}, device_info_of_arch("sm_90"));
  ASSERT_EQ(all[0].candidates.size(), 2u);
  EXPECT_EQ(all[0].candidates[0].config, "threads = 64");
  EXPECT_EQ(all[0].candidates[0].us, 2.5);
  EXPECT_EQ(all[0].candidates[0].rounds, 3);
  EXPECT_FALSE(all[0].candidates[0].is_chosen);
  EXPECT_TRUE(all[0].candidates[1].is_chosen);
  EXPECT_EQ(reason_of_candidate(all[0]),
            "of 2 Configs the marked one is predicted to end first: 1 round of blocks, "
            "multiprocessors busy 25 % of it");
  EXPECT_TRUE(all[1].candidates.empty());
  EXPECT_EQ(reason_of_candidate(all[1]), "");
  EXPECT_TRUE(consider(kToy, Nothing{}, device_info_of_arch("sm_80"))[0].candidates.empty());
}

TEST(Ladder, NamesTheFieldsInWhichConfigsDiffer) {
  constexpr ConfigField fields[] = {{"m"}, {"n"}, {"k"}};
  const jit::Rung& rung = make_rung("toy", "warp", "0.cuh", fields);
  const auto bytes = [](std::array<int, 3> values) { return config_bytes(values); };
  EXPECT_EQ(differing_fields(rung, std::array{bytes({1, 2, 3}), bytes({1, 5, 3})}),
            (std::vector<std::string>{"n = 2", "n = 5"}));
  EXPECT_EQ(differing_fields(rung, std::vector{bytes({1, 2, 3})}),
            (std::vector<std::string>{"m = 1, n = 2, k = 3"}));
  EXPECT_TRUE(differing_fields(rung, {}).empty());
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

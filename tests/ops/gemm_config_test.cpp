// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/gemm/gemm.hpp"
#include "tensorcraft/ops/gemm/plan.h"
#include "tensorcraft/ops/gemm/problem.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

// Which tile gemm takes: what explain says of the choice, and what `config` fixes.
namespace tensorcraft {
namespace {

using kernel::gemm::Config, kernel::gemm::Layout, kernel::gemm::Schedule;
using test::expect_error;

const op::Operator& gemm_operator() { return find_operator("gemm"); }

// m x k by k x n on an architecture, with the text of `config`.
op::Explanation explained(int64_t m, int64_t n, int64_t k, std::string_view config = {},
                          std::string_view variant = {}, const char* arch = "sm_90a") {
  alignas(16) static std::byte memory[16];
  const std::vector<TensorView> inputs{{memory, DType::bfloat16, {m, k}},
                                       {memory, DType::bfloat16, {k, n}}};
  const std::vector<TensorView> outputs{
      {reinterpret_cast<void*>(uintptr_t(1) << 46), DType::bfloat16, {m, n}}};
  const auto& options = gemm_operator().description().options;
  std::vector<op::Value> values(options.size());
  for (size_t i = 0; i < options.size(); ++i)
    if (options[i].name == "config" && !config.empty()) values[i] = config;
  return gemm_operator().explain(outputs, {inputs, values, variant}, device_info_of_arch(arch));
}

const op::Considered& row_named(const op::Explanation& e, std::string_view variant) {
  return *std::ranges::find(e.variants, variant,
                            [](const op::Considered& c) { return c.variant.name; });
}
Config taken_config(const op::Explanation& e, std::string_view variant = {}) {
  Config c;
  const auto& row = row_named(e, variant.empty() ? e.variant : variant);
  std::memcpy(&c, row.plan->first().kernel.config.data(), sizeof(c));
  return c;
}

Tensor zeros(const Dims& shape) {
  Tensor t(DType::bfloat16, shape);
  std::memset(t.data(), 0, t.nbytes());
  return t;
}

TEST(GemmConfig, ExplainListsWhatTheChoiceWeighedAndTheFastestWins) {
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{4096, 4096, 4096}, {512, 512, 512}, {64, 8192, 128}}) {
    const auto e = explained(m, n, k);
    const auto& row = row_named(e, e.variant);
    ASSERT_EQ(e.variant, "persistent");
    ASSERT_GE(row.candidates.size(), 6u);
    EXPECT_EQ(std::ranges::count(row.candidates, true, &op::Weighed::is_chosen), 1);
    const auto& fastest = *std::ranges::min_element(row.candidates, {}, &op::Weighed::us);
    EXPECT_TRUE(fastest.is_chosen);
    for (const op::Weighed& w : row.candidates) {
      EXPECT_GT(w.us, 0) << w.config;
      EXPECT_GE(w.rounds, 1) << w.config;
      EXPECT_TRUE(w.busy > 0 && w.busy <= 1) << w.config;
      EXPECT_EQ(w.config.find("block_k"), w.config.npos) << "all have the same";
    }
    const std::string text = op::to_string(e);
    EXPECT_NE(text.find(op::reason_of_candidate(row)), text.npos);
    EXPECT_NE(text.find("* " + fastest.config), text.npos);
    EXPECT_NE(op::reason_of_candidate(row).find("predicted to end first"), text.npos);
  }
}

TEST(GemmConfig, RungsWithMmaListTheirTilesWithoutTimes) {
  const auto e = explained(2048, 2048, 512, {}, {}, "sm_80");
  const auto& row = row_named(e, "swizzled");
  EXPECT_EQ(e.variant, "swizzled");
  EXPECT_EQ(row.candidates.size(), std::size(kernel::gemm::kSwizzledTiles));
  EXPECT_EQ(std::ranges::count(row.candidates, true, &op::Weighed::is_chosen), 1);
  EXPECT_EQ(row.candidates[0].us, 0);
  EXPECT_NE(op::reason_of_candidate(row).find("expected to end first"), std::string::npos);
  EXPECT_TRUE(row_named(e, "naive").candidates.empty());
}

TEST(GemmConfig, WhatIsFixedIsUsed) {
  Config c = taken_config(explained(4096, 4096, 512, "tile_m=64, tile_n=64"));
  EXPECT_EQ(c.block_m, 64);
  EXPECT_EQ(c.block_n, 64);
  c = taken_config(explained(4096, 4096, 512, "tile_n=128,schedule=ping_pong"));
  EXPECT_EQ(c.block_n, 128);
  EXPECT_EQ(c.schedule, Schedule::ping_pong);
  c = taken_config(explained(256, 256, 512, "tile_m=128, tile_n=256, stages=2, cluster_m=2"));
  EXPECT_EQ(c.stages, 2);
  EXPECT_EQ(c.cluster_m * c.cluster_n, 2);
  c = taken_config(explained(4096, 4096, 512, "stages=3", "swizzled"), "swizzled");
  EXPECT_EQ(c.stages, 3);
  // The first rung that has the tile.
  EXPECT_EQ(explained(512, 512, 512, "tile_m=32, tile_n=128").variant, "swizzled");
  EXPECT_EQ(explained(512, 512, 512, "warp_m=64, warp_n=64, stages=1").variant, "tensor_core");
  EXPECT_EQ(explained(512, 512, 512, "tile_m=32, tile_n=32").variant, "block_tiled");
}

TEST(GemmConfig, WhatIsFixedChangesTheKernelsTextAndShowsInExplain) {
  std::vector<std::string> texts;
  for (const KernelOptimizer& fixed : {GemmConfig{.stages = 3}, GemmConfig{.stages = 4}}) {
    const std::string wanted = op::Field<GemmConfig>::text(fixed);
    const auto e = explained(4096, 4096, 512, wanted, "swizzled");
    EXPECT_NE(op::to_string(e).find(join("stages = ", fixed.stages)), std::string::npos) << wanted;
    texts.push_back(jit::entry_text(row_named(e, "swizzled").plan->first().kernel, "sm_90a"));
  }
  EXPECT_NE(texts[0], texts[1]);
}

TEST(GemmConfig, IsTakenFromATypedCallAndFromText) {
  const Tensor a = zeros({64, 64});
  EXPECT_NO_THROW(gemm(a, a, {.config = GemmConfig{.tile_m = 7}})) << "no effect on the CPU";
  if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the emulator";
  const Tensor on_simt = a.to(Device::simt());
  EXPECT_NO_THROW(gemm(on_simt, on_simt, {.config = GemmConfig{.tile_m = 64, .tile_n = 64}}));
  EXPECT_THROW(gemm(on_simt, on_simt, {.config = GemmConfig{.tile_m = 7}}), Error);
}

TEST(GemmConfig, AVariantWithoutTheTileSaysWhichItHas) {
  const auto e = explained(512, 512, 512, "tile_m=80");
  EXPECT_TRUE(e.variant.empty());
  for (const op::Considered& c : e.variants) EXPECT_FALSE(c.accepted) << c.variant.name;
  const auto& row = row_named(e, "persistent");
  EXPECT_EQ(row.reason, "has no tile as config asks");
  EXPECT_EQ(row.candidates.size(), explained(512, 512, 512).variants[0].candidates.size());
  if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the emulator";
}

// In the words of the caller, and each of them runs.
TEST(GemmConfig, AConfigThatNoVariantHasIsToldTheNearestOnes) {
  if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the emulator";
  const auto check = [](DType dtype, GemmConfig config, const char* variant,
                        const std::string& begin) {
    Tensor host(dtype, {64, 64});
    std::memset(host.data(), 0, host.nbytes());
    const Tensor a = host.to(Device::simt());
    std::string text;
    try {
      gemm(a, a, {.config = config, .variant = variant});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      text = error.what();
    }
    EXPECT_TRUE(text.starts_with(begin)) << text;
    EXPECT_LT(text.size(), 300u) << text;
    constexpr std::string_view kList = "; the nearest that are accepted: ";
    const size_t at = text.find(kList);
    ASSERT_NE(at, text.npos) << text;
    int listed = 0;
    for (std::string_view rest = std::string_view(text).substr(at + kList.size()); !rest.empty();) {
      const size_t end = std::min(rest.find("; "), rest.size());
      const auto one = op::Field<GemmConfig>::get("gemm", "config", rest.substr(0, end));
      EXPECT_NO_THROW(gemm(a, a, {.config = one, .variant = variant})) << text;
      rest = rest.substr(std::min(end + 2, rest.size()));
      ++listed;
    }
    EXPECT_TRUE(listed >= 1 && listed <= 3) << text;
  };
  check(DType::bfloat16, {.tile_m = 160}, "swizzled",
        "gemm: config tile_m=160: variant swizzled does not accept it: has no tile as config asks");
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    check(dtype, {.tile_m = 100}, "",
          "gemm: config tile_m=100: no variant has it for this call on simt");
    check(dtype, {.tile_m = 30, .tile_n = 70}, "", "gemm: config tile_m=30, tile_n=70: no variant");
  }
  const Tensor a = zeros({64, 64}).to(Device::simt());
  expect_error(
      ErrorKind::unsupported,
      [&] { gemm(a, a, {.config = GemmConfig{.tile_m = 7}, .variant = "gemv"}); },
      "gemm: variant gemv does not accept this problem\n  gemv: takes up to 4 rows of a, or "
      "columns "
      "of b");
}

// So that tuning can ask for each of them alone.
TEST(GemmConfig, TheOptionOfACandidateFixesIt) {
  for (const std::string_view variant :
       {"persistent", "split_k", "tma", "swizzled", "tensor_core"}) {
    const auto all = row_named(explained(1024, 1024, 4096), variant).candidates;
    ASSERT_GE(all.size(), 2u) << variant;
    for (const op::Weighed& candidate : all) {
      const auto e = explained(1024, 1024, 4096, candidate.option, variant);
      ASSERT_EQ(e.variant, variant) << candidate.option;
      const auto& left = row_named(e, variant).candidates;
      const auto same = std::ranges::count(left, candidate.option, &op::Weighed::option);
      EXPECT_EQ(size_t(same), left.size()) << candidate.option << " has others beside it";
    }
  }
}

TEST(GemmConfig, SplitIsTheNumberOfPartsOfK) {
  for (const int split : {2, 4, 8}) {
    const auto e = explained(64, 64, 8192, join("split=", split), "split_k");
    EXPECT_EQ(taken_config(e, "split_k").split, split);
  }
  EXPECT_FALSE(row_named(explained(64, 64, 8192, "split=3"), "split_k").accepted);
}

TEST(GemmConfig, ItsTextIsReadBack) {
  using Text = op::Field<GemmConfig>;
  for (const std::string text :
       {"", "tile_m=128, tile_n=256", "stages=4, split=2, schedule=ping_pong",
        "tile_m=64, tile_n=64, tile_k=32, warp_m=32, warp_n=16, stages=3, cluster_m=2, "
        "cluster_n=1, consumers=2, split=1, schedule=together"})
    EXPECT_EQ(Text::text(Text::get("gemm", "config", std::string_view(text))), text);
}

TEST(GemmConfig, SaysWhichSettingIsWrong) {
  const std::string names =
      "it may have tile_m, tile_n, tile_k, warp_m, warp_n, stages, cluster_m, cluster_n, "
      "consumers, split, schedule";
  expect_error(
      ErrorKind::value, [] { explained(64, 64, 64, "tilem=64"); },
      "gemm: config has no \"tilem\"; " + names + "; did you mean tile_m?");
  expect_error(
      ErrorKind::value, [] { explained(64, 64, 64, "tile_m=0"); },
      "gemm: config: tile_m must be a positive whole number, got 0");
  expect_error(
      ErrorKind::value, [] { explained(64, 64, 64, "tile_m=6x"); },
      "gemm: config: tile_m must be a positive whole number, got 6x");
  expect_error(
      ErrorKind::value, [] { explained(64, 64, 64, "tile_m"); },
      "gemm: config: expected NAME=VALUE, got \"tile_m\"");
  expect_error(
      ErrorKind::value, [] { explained(64, 64, 64, "schedule=alone"); },
      "gemm: config: schedule \"alone\" is not known; there are any, together, ping_pong");
}

// A Config must be like this on wgmma; the test breaks one rule at a time.
TEST(GemmConfig, SaysWhyAConfigCannotBe) {
  const auto problem = [](auto change, Layout a = Layout::row_major) {
    Config c{.block_m = 128,
             .block_n = 256,
             .block_k = 64,
             .threads = 384,
             .stages = 4,
             .consumers = 2,
             .slots = 2};
    c.a_layout = a;
    change(c);
    return kernel::gemm::ring_problem(c, 2);
  };
  EXPECT_EQ(problem([](Config&) {}), "");
  EXPECT_EQ(problem([](Config& c) { c.consumers = 4; }), "config: consumers must be 1, 2 or 3");
  EXPECT_EQ(problem([](Config& c) { c.consumers = 1, c.schedule = Schedule::ping_pong; }),
            "config: two consumers take turns (ping_pong)");
  EXPECT_EQ(problem([](Config& c) { c.block_m = 160; }),
            "config: tile_m must be 64 rows, or a multiple, for each consumer");
  EXPECT_EQ(problem([](Config& c) { c.block_m = 129; }),
            "config: tile_m must be 64 rows, or a multiple, for each consumer");
  EXPECT_EQ(problem([](Config& c) { c.block_n = 200; }),
            "config: tile_n must be a multiple of 16 up to 512");
  EXPECT_EQ(problem([](Config& c) { c.block_k = 32; }),
            "config: tile_k must be 128 bytes of an operand");
  EXPECT_EQ(problem([](Config& c) { c.block_m = 256; }),
            "config: a consumer's part of the tile takes more registers than a thread has");
  EXPECT_EQ(problem([](Config& c) { c.stages = 1; }), "config: stages must be 2 or more");
  EXPECT_EQ(problem([](Config& c) { c.stages = 5; }),
            "config: the stages take more shared memory than a block has");
  EXPECT_EQ(problem([](Config& c) { c.cluster_m = 3, c.cluster_n = 2; }),
            "config: a cluster has 1, 2 or 4 blocks");
  EXPECT_EQ(problem([](Config& c) { c.block_m = 64, c.consumers = 1, c.cluster_n = 2; },
                    Layout::column_major),
            "config: the blocks of a cluster cannot share so small a tile in this layout");
}

// Every shipped tile can be, and in the layout that all of them take.
TEST(GemmConfig, TheTableHasLegalTilesAlone) {
  const auto e = explained(4096, 4096, 4096);
  for (const op::Weighed& w : row_named(e, "persistent").candidates) EXPECT_GT(w.us, 0) << w.config;
  for (const auto& t : kernel::gemm::kPersistentTiles) {
    Config c{.block_m = t.m,
             .block_n = t.n,
             .block_k = 64,
             .stages = t.stages,
             .cluster_m = t.cluster_m,
             .cluster_n = t.cluster_n,
             .consumers = t.consumers,
             .schedule = t.schedule,
             .slots = 2,
             .b_layout = Layout::column_major};
    EXPECT_EQ(kernel::gemm::ring_problem(c, 2), "") << t.m << " x " << t.n;
  }
}

// G17: wgmma where it exists, mma.sync elsewhere, nothing before 80.
TEST(GemmConfig, TheRungFollowsTheArchitecture) {
  EXPECT_EQ(explained(4096, 4096, 4096, {}, {}, "sm_90a").variant, "persistent");
  for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_100a", "sm_120a"}) {
    const auto e = explained(4096, 4096, 4096, {}, {}, arch);
    EXPECT_TRUE(e.variant == "swizzled" || e.variant == "tma") << arch << ": " << e.variant;
    const bool is_older = std::string_view(arch).size() == 5 && std::string_view(arch) < "sm_90";
    for (const char* rung : {"wgmma", "warp_specialized", "persistent"})
      EXPECT_EQ(row_named(e, rung).reason, is_older ? "needs sm_90" : "wgmma exists on sm_90 alone")
          << arch;
  }
}

}  // namespace
}  // namespace tensorcraft

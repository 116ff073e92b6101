// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/tuning/configuration_selector.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::op {
namespace {

constexpr Gpu kHopperGpu{.architecture = 90,
                         .num_sms = 132,
                         .threads_per_sm = 2048,
                         .shared_bytes_per_block = 227 << 10};

SelectedConfiguration selected_for(int64_t m, int64_t n, int64_t k,
                                   std::optional<double> history = {},
                                   DType dtype = DType::float16) {
  return ConfigurationSelector(kHopperGpu).select({m, n, k, dtype}, history);
}

TEST(ConfigurationSelector, TakesTheLargeRuleAbove2048) {
  const SelectedConfiguration s = selected_for(4096, 4096, 4096);
  EXPECT_EQ(s.rule, "large");
  EXPECT_EQ(s.confidence, 0.9);
  EXPECT_EQ(s.configuration, (KernelConfiguration{128, 128, 64, 4, 4, 2}));
  EXPECT_EQ(selected_for(4096, 4096, 2048).rule, "square") << "k is not above 2048";
  EXPECT_TRUE(s.changed.empty());
}

TEST(ConfigurationSelector, TakesTheSmallRuleUpTo512AndNotTheSquareOne) {
  const SelectedConfiguration s = selected_for(256, 256, 256);
  EXPECT_EQ(s.rule, "small");
  EXPECT_EQ(s.confidence, 0.85);
  EXPECT_EQ(s.configuration, (KernelConfiguration{64, 64, 32, 2, 2, 1}));
  EXPECT_EQ(selected_for(512, 512, 512).rule, "small");
  EXPECT_EQ(selected_for(512, 512, 513).rule, "square");
}

TEST(ConfigurationSelector, TakesTheSquareRuleWithinATenth) {
  for (const int64_t k : {64, 1024, 16384}) {
    const SelectedConfiguration s = selected_for(1024, 1024, k);
    EXPECT_EQ(s.rule, "square");
    EXPECT_EQ(s.confidence, 0.88);
    EXPECT_EQ(s.configuration, (KernelConfiguration{128, 128, 32, 4, 4, 2}));
  }
  EXPECT_EQ(selected_for(1000, 1099, 64).rule, "square");
  EXPECT_EQ(selected_for(1000, 1100, 64).rule, "default");
  EXPECT_EQ(selected_for(1000, 901, 64).rule, "square");
}

TEST(ConfigurationSelector, TheHighestConfidenceWinsAndThereIsADefault) {
  EXPECT_EQ(selected_for(4096, 4096, 4096).rule, "large") << "it is square too";
  const SelectedConfiguration s = selected_for(1024, 4096, 1024);
  EXPECT_EQ(s.rule, "default");
  EXPECT_EQ(
      ConfigurationSelector(kHopperGpu).validate_configuration(s.configuration, DType::float16),
      "");
  for (const ConfigurationRule& rule : ConfigurationSelector::rules())
    EXPECT_TRUE(rule.confidence > 0 && rule.confidence < 1) << rule.name;
}

TEST(ConfigurationSelector, HistoryMakesItConservativeOrAggressive) {
  const KernelConfiguration plain = selected_for(4096, 4096, 4096).configuration;
  EXPECT_EQ(selected_for(4096, 4096, 4096, 0.7).configuration, plain);
  EXPECT_EQ(selected_for(4096, 4096, 4096, 0.95).configuration, plain);
  const SelectedConfiguration careful = selected_for(4096, 4096, 4096, 0.69);
  EXPECT_EQ(careful.configuration, (KernelConfiguration{64, 64, 64, 4, 4, 1}));
  EXPECT_EQ(careful.changed, "smaller, as choices were far from the fastest");
  const SelectedConfiguration bold = selected_for(4096, 4096, 4096, 0.96);
  EXPECT_EQ(bold.configuration, (KernelConfiguration{128, 128, 64, 4, 4, 3}));
  EXPECT_EQ(bold.changed, "with another stage, as choices were near the fastest");
}

TEST(ConfigurationSelector, SaysWhyABlockCannotHaveAConfiguration) {
  const ConfigurationSelector selector(kHopperGpu);
  const auto why = [&](const KernelConfiguration& c, DType dtype = DType::float16) {
    return selector.validate_configuration(c, dtype);
  };
  EXPECT_EQ(why({128, 128, 64, 4, 4, 2}), "");
  EXPECT_EQ(why({128, 128, 64, 4, 4, 0}), "every size must be at least 1");
  EXPECT_EQ(why({256, 256, 64, 8, 8, 2}), "8 x 8 warps are more than 1024 threads");
  EXPECT_EQ(why({72, 64, 32, 2, 2, 2}), "a warp's part of 72 x 64 must be a multiple of 16 x 8");
  EXPECT_EQ(why({64, 64, 24, 2, 2, 2}), "block_k must be a multiple of 16 for float16");
  EXPECT_EQ(why({64, 64, 48, 2, 2, 2}, DType::float8_e4m3fn),
            "block_k must be a multiple of 32 for float8_e4m3fn");
  EXPECT_EQ(why({64, 64, 8, 2, 2, 2}, DType::float32), "");
  EXPECT_EQ(why({256, 256, 64, 4, 4, 4}),
            "4 stages take 262144 bytes of shared memory, and a block has 232448");
}

TEST(ConfigurationSelector, ReplacesWhatADeviceCannotRun) {
  Gpu small = kHopperGpu;
  small.shared_bytes_per_block = 20 << 10;
  const ConfigurationSelector selector(small);
  const SelectedConfiguration s = selector.select({4096, 4096, 4096});
  EXPECT_NE(s.configuration, selected_for(4096, 4096, 4096).configuration);
  EXPECT_EQ(selector.validate_configuration(s.configuration, DType::float16), "");
  EXPECT_EQ(s.changed, "made to fit the device and float16");
  for (const int64_t bytes : {1, 1000, 4096, 48 << 10}) {
    small.shared_bytes_per_block = bytes;
    const KernelConfiguration c = ConfigurationSelector(small).select({64, 64, 64}).configuration;
    EXPECT_GE(std::min({c.block_m, c.block_n, c.block_k, c.warps_m, c.warps_n, c.stages}), 1);
  }
}

TEST(ConfigurationSelector, KnowsThePrecision) {
  const KernelConfiguration c =
      selected_for(1024, 1024, 1024, {}, DType::float8_e4m3fn).configuration;
  EXPECT_EQ(c.block_k % 32, 0);
  EXPECT_EQ(selected_for(4096, 4096, 4096, {}, DType::float32).configuration.block_k % 8, 0);
}

TEST(ConfigurationSelector, SaysTheRuleAndTheReason) {
  EXPECT_EQ(to_string(selected_for(4096, 4096, 4096)),
            "rule large (m, n and k above 2048), confidence 0.9: 128 x 128 x 64, 4 x 4 warps, 2 "
            "stages");
}

}  // namespace
}  // namespace tensorcraft::op

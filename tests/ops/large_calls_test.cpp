// SPDX-License-Identifier: Apache-2.0
#include "tests/support/large_calls.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>

// The calls that tests/gpu makes with more than 2^31 elements, with few on the CPU and the
// emulator: that they mean what they should, and that no operator is without one.
namespace tensorcraft::test {
namespace {

constexpr int64_t kFew = 3000;

const std::set<std::string_view> kNone{
    "moe_sort",  // 31 bits count all its elements
    // Numbers of a call follow its sizes: gpu/large_csr_test.cpp.
    "csr_starts",
    "csr_to_dense",
    "csr_transpose",
};

TEST(LargeCalls, AreThereForEveryOperator) {
  const auto calls = large_calls();
  for (const op::Operator* op : operators()) {
    if (kNone.contains(op->description().name)) continue;
    EXPECT_TRUE(std::ranges::any_of(calls, [&](const LargeCall& c) { return &c.op() == op; }))
        << op->description().name << " has no large call in tests/ops/cases";
  }
}

TEST(LargeCalls, AreLargeAndFitAGpuOf80Gigabytes) {
  for (const LargeCall& call : large_calls()) {
    EXPECT_GT(call.bytes(int64_t(1) << 31), int64_t(1) << 31) << call.name();
    EXPECT_LT(call.bytes(int64_t(1) << 31), int64_t(60) << 30) << call.name();
  }
}

class SmallLargeCalls : public ::testing::TestWithParam<LargeCall> {
 protected:
  static void expect_agreement(Device device) {
    const auto variants = GetParam().variants(device, kFew);
    EXPECT_FALSE(variants.empty());
    for (const std::string& variant : variants)
      EXPECT_EQ(GetParam().run(device, kFew, variant), "") << variant;
  }
};

TEST_P(SmallLargeCalls, AgreeWithTheReferenceOnTheCpu) { expect_agreement(Device::cpu()); }

TEST_P(SmallLargeCalls, AgreeWithTheReferenceOnTheSimtDevice) {
  if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the emulator";
  expect_agreement(Device::simt());
}

INSTANTIATE_TEST_SUITE_P(Operators, SmallLargeCalls, ::testing::ValuesIn(large_calls()),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace tensorcraft::test

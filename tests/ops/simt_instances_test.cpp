// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/simt_cases.hpp"

#include <gtest/gtest.h>

// The kernels that tests/support/write_instances.cpp has compiled ahead for the emulator.
namespace tensorcraft::test {
namespace {

class SimtDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the emulator";
  }
};

// A call on the emulator finds a kernel without a compiler, if it leaves the choice of a Config
// free.
TEST_F(SimtDevice, HasAKernelForEveryCase) {
  for (const Case& c : all_cases()) {
    if (!c.has_tag("conformance") || c.has_tag("fixed")) continue;
    const CaseRun run(c, Device::simt());
    const auto e = c.op->explain(run.outputs(), run.arguments({}), device_info(Device::simt()));
    EXPECT_FALSE(e.variant.empty()) << c.name;
    const auto& last = e.variants.back();  // of im2col, which has one rung, by its name
    EXPECT_TRUE(last.variant.name == "naive" || last.variant.name == c.op->description().name);
    EXPECT_TRUE(last.accepted) << c.name << ": " << last.reason;
  }
}

}  // namespace
}  // namespace tensorcraft::test

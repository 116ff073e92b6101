// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernel_text.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

// ptxas says so if it waits after each product because it cannot follow the registers.
TEST(WgmmaTile, CompilesForHopperWithItsProductsInFlight) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const auto result = test::compile_wgmma_tile();
  ASSERT_TRUE(result.ok) << result.log;
  EXPECT_FALSE(result.image.empty());
  EXPECT_EQ(result.log.find("wgmma.mma_async instructions are serialized"), std::string::npos)
      << result.log;
  EXPECT_NE(result.log.find("0 bytes spill stores"), std::string::npos) << result.log;
}

TEST(CopyBox, CompilesForEveryRank) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const auto result = test::compile_copy_box();
  EXPECT_TRUE(result.ok) << result.log;
}

TEST(AsyncWrappers, Compile) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const auto result = test::compile_for_hopper(
      "async_wrappers.cuh",
      "namespace wrappers = tensorcraft::kernel::async_wrappers;\n"
      "extern \"C\" __global__ void __launch_bounds__(128, 1)\n"
      "tc_entry(const __grid_constant__ wrappers::Params p) { wrappers::run(p); }\n");
  EXPECT_TRUE(result.ok) << result.log;
}

}  // namespace
}  // namespace tensorcraft

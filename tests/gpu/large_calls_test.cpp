// SPDX-License-Identifier: Apache-2.0
#include "tests/support/large_calls.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

// Every operator with more than 2^31 elements in a tensor, by the variant that it chooses, or with
// TC_TEST_FULL by each that accepts; some take longer than seconds then.
namespace tensorcraft::test {
namespace {

constexpr int64_t kMany = (int64_t(1) << 31) + (int64_t(1) << 24);

class LargeCallsOnGpu : public ::testing::TestWithParam<LargeCall> {};

TEST_P(LargeCallsOnGpu, AgreeWithTheReference) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const LargeCall& call = GetParam();
  const Device device = Device::cuda(0);
  const int64_t bytes = call.bytes(kMany);
  if (double(bytes) > 0.95 * double(device_info(device).memory_bytes))
    GTEST_SKIP() << "takes " << (bytes >> 20) << " MiB, of which the GPU has "
                 << (device_info(device).memory_bytes >> 20);
  std::vector<std::string> variants{""};
  if (std::getenv("TC_TEST_FULL")) variants = call.variants(device, kMany);
  ASSERT_FALSE(variants.empty());
  for (const std::string& variant : variants) try {
      EXPECT_EQ(call.run(device, kMany, variant), "") << variant;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::out_of_memory) throw;
      GTEST_SKIP() << error.what();
    }
}

INSTANTIATE_TEST_SUITE_P(Operators, LargeCallsOnGpu, ::testing::ValuesIn(large_calls()),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace tensorcraft::test

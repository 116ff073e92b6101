// SPDX-License-Identifier: Apache-2.0
// A launch and the check of its error. Without a driver every launch and cudaGetLastError() itself
// fail, so what tells a bad configuration from a good one is skipped there; scripts/gpu_test.sh
// runs it on a GPU.
#include "tensorcraft/kernels/launch.cuh"
#include "tests/kernels/thrown_text.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <regex>

namespace tensorcraft::kernels {
namespace {

__global__ void nothing(int) {}

const dim3 kGood(32), kBad(4096);  // a block as large as the second does not exist
const std::string kBadText =
    std::string(" CUDA error: ") + cudaGetErrorString(cudaErrorInvalidConfiguration);

// Which of the two a launch says depends on the runtime.
bool tells_bad_launch(const std::string& text) {
  return text.ends_with(kBadText) ||
         text.ends_with(std::string(" CUDA error: ") + cudaGetErrorString(cudaErrorInvalidValue));
}

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "there is no GPU";
  }
  void TearDown() override { cudaGetLastError(); }
};

TEST(CudaCheck, NamesFileLineAndText) {
  const cudaError_t err = cudaErrorInvalidValue;  // a caller's variable of any name
  const std::string text = text_of<std::runtime_error>([&] { TC_CUDA_CHECK(err); });
  EXPECT_TRUE(std::regex_match(text, std::regex(".+:\\d+ CUDA error: .+"))) << text;
  EXPECT_NE(text.find("launch_test.cu:"), text.npos) << text;
  TC_CUDA_CHECK(cudaSuccess);
}

TEST(RuntimeDeviceCheck, NamesTheErrorAndTheCallersLine) {
  EXPECT_NO_THROW(RuntimeDeviceCheck(cudaSuccess));
  const int line = __LINE__ + 2;
  const std::string text =
      text_of<std::runtime_error>([] { RuntimeDeviceCheck(cudaErrorInvalidConfiguration); });
  EXPECT_TRUE(text.ends_with("launch_test.cu:" + std::to_string(line) + kBadText)) << text;
}

TEST_F(OnGpu, TheLastErrorTellsABadConfigurationFromAGoodOne) {
  nothing<<<1, kGood>>>(0);
  EXPECT_NO_THROW(TC_CUDA_CHECK_LAST());
  nothing<<<1, kBad>>>(0);
  const std::string text = text_of<std::runtime_error>([] { TC_CUDA_CHECK_LAST(); });
  EXPECT_TRUE(tells_bad_launch(text)) << text;
  EXPECT_NO_THROW(RuntimeDeviceCheck());
  nothing<<<1, kBad>>>(0);
  EXPECT_THROW(RuntimeDeviceCheck(), std::runtime_error);
}

TEST_F(OnGpu, LaunchKernelTellsABadConfigurationFromAGoodOne) {
  EXPECT_NO_THROW(LaunchKernel(dim3(1), kGood, cudaStream_t())(nothing, 1));
  const int line = __LINE__ + 1;
  const auto launch = [] { LaunchKernel(dim3(1), kBad, cudaStream_t())(nothing, 1); };
  const std::string text = text_of<std::runtime_error>(launch);
  EXPECT_NE(text.find("launch_test.cu:" + std::to_string(line)), text.npos) << text;
  EXPECT_TRUE(tells_bad_launch(text)) << text;
  EXPECT_NO_THROW(TC_CUDA_CHECK_LAST());  // the exception has told it
}

TEST(LaunchKernel, AnErrorNamesTheLineOfTheLaunch) {
  const int line = __LINE__ + 1;
  const auto launch = [] { LaunchKernel(dim3(1), dim3(4096), cudaStream_t())(nothing, 1); };
  const std::string text = text_of<std::runtime_error>(launch);
  EXPECT_NE(text.find("launch_test.cu:" + std::to_string(line) + " CUDA error: "), text.npos)
      << text;
}

TEST(LaunchKernel, TakesCudaDevicesOnly) {
  EXPECT_EQ(text_of<std::invalid_argument>([] {
              LaunchKernel(dim3(1), dim3(1), dlpack::DLDevice{dlpack::kDLCPU, 0})(nothing, 1);
            }),
            "LaunchKernel: kernels run on CUDA devices");
}

TEST(KernelConfig, HasTheDefaultsOfABlock) {
  constexpr KernelConfig config;
  static_assert(config.block_size_x == 256 && config.block_size_y == 1 && config.block_size_z == 1);
  static_assert(config.shared_memory_bytes == 0 && config.stream == nullptr);
  static_assert(config.block() == Dim3{256, 1, 1});
}

}  // namespace
}  // namespace tensorcraft::kernels

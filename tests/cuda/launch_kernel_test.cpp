// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/launch_kernel.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/tensor_matcher.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using test::FakeDriver;
using test::FakeGpu;

struct Params {
  int value;
};

TEST(LaunchKernel, LaunchesOnADevicesCurrentStream) {
  FakeDriver fake({FakeGpu{}, FakeGpu{}});
  const std::byte image[4] = {};
  const auto kernel = LoadedKernel::load(image, "tc_entry", 1);
  Stream stream(1);
  set_current_stream(stream);
  LaunchKernel({8}, {128}, {dlpack::kDLCUDA, 1}, 256).cluster({2})(*kernel, Params{3});
  set_current_stream(StreamRef::default_stream(1));
  ASSERT_EQ(fake.launches.size(), 1u);
  EXPECT_EQ(fake.launches[0].stream, stream.ref().handle());
  EXPECT_EQ(fake.launches[0].shared_bytes, 256u);
  EXPECT_EQ(fake.launches[0].cluster, (Dim3{2, 1, 1}));
}

TEST(LaunchKernel, AnErrorNamesTheLineOfTheLaunch) {
  FakeDriver fake;
  const std::byte image[4] = {};
  const auto kernel = LoadedKernel::load(image, "tc_entry", 0);
  fake.failing["cuLaunchKernelEx"] = 1;
  const int line = __LINE__ + 2;
  try {
    LaunchKernel({1}, {2048}, StreamRef())(*kernel, Params{3});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(int(error.where().line()), line);
    EXPECT_NE(std::string(error.where().file_name()).find("launch_kernel_test.cpp"),
              std::string::npos);
  }
  fake.failing.clear();
  EXPECT_NO_THROW(RuntimeDeviceCheck());  // the exception has told it, and the device is usable
  EXPECT_NO_THROW(LaunchKernel({1}, {32}, StreamRef())(*kernel, Params{3}));
}

TEST(LaunchKernel, TakesItsShapeFromAKernelConfig) {
  FakeDriver fake({FakeGpu{}, FakeGpu{}});
  const std::byte image[4] = {};
  const auto first = LoadedKernel::load(image, "tc_entry", 0);
  const auto second = LoadedKernel::load(image, "tc_entry", 1);
  LaunchKernel({8}, KernelConfig{})(*first, Params{3});
  Stream stream(1);
  const KernelConfig config{.block_size_x = 32,
                            .block_size_y = 4,
                            .block_size_z = 2,
                            .shared_memory_bytes = 512,
                            .stream = stream.ref().handle()};
  LaunchKernel({8}, config, 1)(*second, Params{3});
  ASSERT_EQ(fake.launches.size(), 2u);
  EXPECT_EQ(fake.launches[0].block, (Dim3{256, 1, 1}));
  EXPECT_EQ(fake.launches[0].shared_bytes, 0u);
  EXPECT_EQ(fake.launches[0].stream, nullptr);
  EXPECT_EQ(fake.launches[1].block, (Dim3{32, 4, 2}));
  EXPECT_EQ(fake.launches[1].shared_bytes, 512u);
  EXPECT_EQ(fake.launches[1].stream, config.stream);
}

// CUDA's own type for a grid, which only its compiler has.
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

TEST(LaunchKernel, TakesNumbersAndTheDeviceOfAMatcher) {
  FakeDriver fake({FakeGpu{}, FakeGpu{}});
  const std::byte image[4] = {};
  const auto kernel = LoadedKernel::load(image, "tc_entry", 1);
  SymbolicDevice device;
  device.set_value(Device::cuda(1));
  const Stream stream(1);
  set_current_stream(stream);
  const int64_t blocks = 8;
  LaunchKernel(blocks, 128, device.unwrap())(*kernel, Params{3});
  LaunchKernel(dim3{2, 3}, Dim3{32, 4}, device.unwrap(), 64)(*kernel, Params{3});
  set_current_stream(StreamRef::default_stream(1));
  ASSERT_EQ(fake.launches.size(), 2u);
  EXPECT_EQ(fake.launches[0].stream, stream.ref().handle());
  EXPECT_EQ(fake.launches[0].grid, (Dim3{8, 1, 1}));
  EXPECT_EQ(fake.launches[0].block, (Dim3{128, 1, 1}));
  EXPECT_EQ(fake.launches[1].stream, stream.ref().handle());
  EXPECT_EQ(fake.launches[1].grid, (Dim3{2, 3, 1}));
  EXPECT_EQ(fake.launches[1].block, (Dim3{32, 4, 1}));
  EXPECT_EQ(fake.launches[1].shared_bytes, 64u);
  test::expect_error_with(ErrorKind::value, "negative or beyond",
                          [] { LaunchKernel(int64_t(1) << 32, 128, StreamRef()); });
}

TEST(LaunchKernel, RefusesADeviceThatIsNotCuda) {
  EXPECT_THROW(LaunchKernel(1, 32, Device::simt()), Error);
  EXPECT_THROW(LaunchKernel::resolve_device({dlpack::kDLCPU, 0}), Error);
}

}  // namespace
}  // namespace tensorcraft

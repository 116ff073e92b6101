// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/device.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using test::FakeDriver;
using test::FakeGpu;

TEST(Device, ArchitectureFollowsTheLiveDevice) {
  const std::pair<int, const char*> cases[] = {{80, "sm_80"},   {86, "sm_86"},    {89, "sm_89"},
                                               {90, "sm_90a"},  {100, "sm_100a"}, {103, "sm_103a"},
                                               {120, "sm_120a"}};
  for (const auto& [capability, arch] : cases) {
    FakeDriver fake({FakeGpu{.compute_capability = capability}});
    EXPECT_EQ(device_info(Device::cuda(0)).arch(), arch);
  }
}

TEST(Device, RefusesAGpuBeforeSm80WithTheExactMessage) {
  FakeDriver fake({FakeGpu{.name = "Fake T4", .compute_capability = 75}});
  try {
    device_info(Device::cuda(0));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_STREQ(error.what(),
                 "TensorCraft requires SM >= 80 (Ampere)\n  cuda:0 (Fake T4) is SM 75; choose "
                 "another GPU, or use device \"cpu\"");
  }
}

TEST(Device, CapabilitiesFollowTheirThresholds) {
  const auto info = [](int capability) { return DeviceInfo{.compute_capability = capability}; };
  EXPECT_FALSE(info(69).has_tensor_cores());
  EXPECT_TRUE(info(70).has_tensor_cores());
  EXPECT_FALSE(info(86).has_fp8());
  EXPECT_TRUE(info(89).has_fp8());
  EXPECT_FALSE(info(89).has_tma());
  EXPECT_TRUE(info(90).has_tma());
  EXPECT_FALSE(info(89).has_clusters());
  EXPECT_TRUE(info(120).has_clusters());
  EXPECT_FALSE(info(89).has_wgmma());
  EXPECT_TRUE(info(90).has_wgmma());
  EXPECT_FALSE(info(100).has_wgmma());
  EXPECT_FALSE(info(90).has_ue8m0());
  EXPECT_TRUE(info(100).has_ue8m0());
}

TEST(Device, FiguresOfAnH200AreWithinFivePercentOfItsDataSheet) {
  FakeDriver fake;
  const DeviceInfo& info = device_info(Device::cuda(0));
  EXPECT_EQ(info.name, "Fake H200");
  EXPECT_EQ(info.num_sms, 132);
  EXPECT_EQ(info.threads_per_sm, 2048);
  EXPECT_EQ(info.registers_per_sm, 65536);
  EXPECT_EQ(info.shared_bytes_per_sm, size_t(228) << 10);
  EXPECT_EQ(info.shared_bytes_per_block, 232448u);
  EXPECT_EQ(info.l2_bytes, size_t(60) << 20);
  EXPECT_NEAR(info.memory_gb_per_s, 4800, 240);
  EXPECT_NEAR(info.peak_bf16_tflops, 989, 50);
  EXPECT_NEAR(info.peak_fp8_tflops, 1979, 99);
  EXPECT_NEAR(info.peak_fp32_tflops, 67, 3.4);
}

TEST(Device, DescribesArchitecturesWithoutADevice) {
  for (const char* name : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120"}) {
    const DeviceInfo info = device_info_of_arch(name);
    EXPECT_GE(info.compute_capability, 80);
    EXPECT_GT(info.num_sms, 0);
    EXPECT_GT(info.peak_bf16_tflops, 0);
    EXPECT_GT(info.shared_bytes_per_block, size_t(96) << 10);
  }
  EXPECT_EQ(device_info_of_arch("sm_90").arch(), "sm_90a");
  EXPECT_NEAR(device_info_of_arch("sm_80").peak_bf16_tflops, 312, 1);
  EXPECT_NEAR(device_info_of_arch("sm_86").peak_bf16_tflops, 125, 1);
  EXPECT_NEAR(device_info_of_arch("sm_89").peak_fp8_tflops, 733, 5);
  EXPECT_THROW(device_info_of_arch("sm_75"), Error);
  EXPECT_THROW(device_info_of_arch("sm_80a"), Error);
  EXPECT_THROW(device_info_of_arch(""), Error);
}

TEST(Device, TheCpuHasANameAndNothingElse) {
  EXPECT_FALSE(device_info(Device::cpu()).name.empty());
  EXPECT_EQ(device_info(Device::cpu()).compute_capability, 0);
  EXPECT_NO_THROW(synchronize(Device::cpu()));
}

TEST(Device, SimtEmulatesAnSm90a) {
  const DeviceInfo& simt = device_info(Device::simt());
  const DeviceInfo hopper = device_info_of_arch("sm_90a");
  EXPECT_EQ(simt.device, Device::simt());
  EXPECT_EQ(simt.arch(), "sm_90a");
  EXPECT_EQ(simt.num_sms, hopper.num_sms);
  EXPECT_EQ(simt.shared_bytes_per_block, hopper.shared_bytes_per_block);
  EXPECT_TRUE(simt.name.starts_with("SIMT emulator on ")) << simt.name;
  EXPECT_NO_THROW(synchronize(Device::simt()));
}

TEST(Device, NamesTheDevicesThatExist) {
  FakeDriver fake({FakeGpu{}, FakeGpu{}});
  try {
    device_info(Device::cuda(2));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::value);
    EXPECT_STREQ(error.what(),
                 "device cuda:2 does not exist; this machine has 2 CUDA devices, cuda:0 to cuda:1");
  }
  EXPECT_THROW(DeviceGuard(2), Error);
  EXPECT_THROW(device_info({DeviceType::cuda, -1}), Error);
}

TEST(DeviceGuard, RestoresTheContextAlsoWhenAnExceptionPasses) {
  FakeDriver fake({FakeGpu{}, FakeGpu{}});
  FakeDriver::set_current_context(FakeDriver::context_of(0));
  {
    const DeviceGuard outer(1);
    EXPECT_EQ(FakeDriver::current_context(), FakeDriver::context_of(1));
    try {
      const DeviceGuard inner(0);
      EXPECT_EQ(FakeDriver::current_context(), FakeDriver::context_of(0));
      throw 1;
    } catch (int) {
    }
    EXPECT_EQ(FakeDriver::current_context(), FakeDriver::context_of(1));
  }
  EXPECT_EQ(FakeDriver::current_context(), FakeDriver::context_of(0));
}

TEST(DeviceGuard, RestoresNoContextWhereThereWasNone) {
  FakeDriver fake;
  {
    const DeviceGuard guard(0);
  }
  EXPECT_EQ(FakeDriver::current_context(), nullptr);
}

TEST(DeviceGuard, RetainsAContextOnceAndOnlyOnTheDeviceInUse) {
  FakeDriver fake({FakeGpu{}, FakeGpu{}});
  EXPECT_EQ(cuda_device_count(), 2);
  EXPECT_EQ(fake.retained_contexts, 0);
  for (int i = 0; i < 3; ++i) DeviceGuard guard(1);
  EXPECT_EQ(fake.retained_contexts, 1);
}

}  // namespace
}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/cost.hpp"

#include "tensorcraft/cuda/device.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::op {
namespace {

TEST(Floor, IsTheSlowerOfMemoryAndTheArithmeticThatTheCallAllows) {
  DeviceInfo gpu{.device = Device::cuda(0), .name = "a GPU", .compute_capability = 90};
  gpu.memory_gb_per_s = 1000;
  gpu.peak_bf16_tflops = 800;
  gpu.peak_fp32_tflops = 50;
  const Cost work{.bytes = 1e6, .flops = 4e9}, idle{.bytes = 1e6, .flops = 1e3};
  const Cost rounded{.bytes = 1e6, .flops = 4e9, .may_round_to_tf32 = true};
  EXPECT_DOUBLE_EQ(floor_us(idle, gpu, DType::float32), 1);
  EXPECT_DOUBLE_EQ(floor_us(work, gpu, DType::float32), 80);
  EXPECT_DOUBLE_EQ(floor_us(work, gpu, DType::bfloat16), 5);
  EXPECT_DOUBLE_EQ(floor_us(rounded, gpu, DType::float32), 10);
  EXPECT_EQ(floor_us(work, device_info(Device::cpu()), DType::float32), 0);
}

}  // namespace
}  // namespace tensorcraft::op

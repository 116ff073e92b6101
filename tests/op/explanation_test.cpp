// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/explanation.hpp"

#include "tests/op/l2_normalize_call.hpp"

#include <array>

#include <gtest/gtest.h>

namespace tensorcraft::op {
namespace {

class Explained : public test::L2NormalizeCall {};

TEST_F(Explained, ExplainRefusesWhatTheCallRefuses) {
  const std::array<Value, 2> options;
  const TensorView x = x_;
  const TensorView elsewhere(out_.data(), DType::float32, {1, 2}, Device::cuda(0));
  EXPECT_THROW(explain(elsewhere, x, device_info(Device::cpu())), Error);
  EXPECT_THROW(operator_.explain(std::span(&x, 1), {std::span(&x, 1), options, "blok"},
                                 device_info(Device::cpu())),
               Error);
}

TEST_F(Explained, ExplainsADeviceThatIsNotThere) {
  const TensorView out(out_.data(), DType::float32, {1, 2}, Device::cuda(0));
  const TensorView x(x_.data(), DType::float32, {1, 2}, Device::cuda(0));
  DeviceInfo gpu{.device = Device::cuda(0), .name = "a GPU", .compute_capability = 90};
  gpu.memory_gb_per_s = 1000;
  const Explanation e = explain(out, x, gpu);
  EXPECT_EQ(e.variant, "in_registers");
  ASSERT_EQ(e.variants.size(), 4u);
  ASSERT_TRUE(e.variants[0].plan);
  EXPECT_EQ(e.variants[0].plan->first().launch.block.x, 128u);
  EXPECT_DOUBLE_EQ(e.floor_us, 16.0 / 1000 / 1e3);
  EXPECT_NE(to_string(e).find("* in_registers"), std::string::npos);
}

}  // namespace
}  // namespace tensorcraft::op

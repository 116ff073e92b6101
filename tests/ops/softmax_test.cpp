// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/softmax/softmax.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

namespace tensorcraft {
namespace {

using test::expect_error;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class SoftmaxOnTheHost : public ::testing::TestWithParam<std::string_view> {};

TEST_P(SoftmaxOnTheHost, RowsSumToOneAndNothingIsNegative) {
  Tensor x(DType::float32, {20, 5000});
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 10);
  for (int64_t i = 0; i < x.size(); ++i) x.data_as<float>()[i] = normal(random);
  const Tensor y = softmax(x, {.variant = GetParam()});
  for (int row = 0; row < 20; ++row) {
    double sum = 0;
    for (int i = 0; i < 5000; ++i) {
      const float value = y.data_as<float>()[row * 5000 + i];
      EXPECT_GE(value, 0.0f);
      sum += value;
    }
    EXPECT_NEAR(sum, 1.0, 1e-5);
  }
}

TEST_P(SoftmaxOnTheHost, MinusInfinityGivesZeroUnlessTheRowHasNothingElse) {
  Tensor x(DType::float32, {2, 2});
  const float values[] = {-kInfinity, 3.0f, -kInfinity, -kInfinity};
  x.copy_from_host(values, sizeof(values));
  const Tensor y = softmax(x, {.variant = GetParam()});
  EXPECT_EQ(y.data_as<float>()[0], 0.0f);
  EXPECT_EQ(y.data_as<float>()[1], 1.0f);
  EXPECT_TRUE(std::isnan(y.data_as<float>()[2]));
  EXPECT_TRUE(std::isnan(y.data_as<float>()[3]));
}

TEST_P(SoftmaxOnTheHost, OutMayBeTheInput) {
  Tensor x(DType::float32, {1, 2});
  const float values[] = {1.0f, 1.0f};
  x.copy_from_host(values, sizeof(values));
  softmax(x, x, {.variant = GetParam()});
  EXPECT_EQ(x.data_as<float>()[0], 0.5f);
  EXPECT_EQ(x.data_as<float>()[1], 0.5f);
}

INSTANTIATE_TEST_SUITE_P(Variants, SoftmaxOnTheHost, ::testing::Values("cpu", "reference"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Softmax, BadArgumentsAreNamedWithTheirValues) {
  const Tensor x(DType::float32, {2, 3}), integers(DType::int8, {2, 3});
  expect_error(
      ErrorKind::type, [&] { softmax(integers); },
      "softmax: x: Dtype value [int8] not in the allowed options: [float32, float16, bfloat16]");
  EXPECT_THROW(softmax(x, {.axis = 2}), Error);
  EXPECT_THROW(softmax(x, {.axis = -3}), Error);
}

// The row chosen for a problem on a GPU, without one.
std::string chosen(const Dims& shape, const Dims& strides, DType dtype,
                   std::string_view arch = "sm_90a") {
  alignas(64) static char memory[64];
  const TensorView t(memory, dtype, shape, strides, Device::cpu());
  const TensorView inputs[] = {t}, outputs[] = {t};
  const auto e =
      find_operator("softmax").explain(outputs, {.inputs = inputs}, device_info_of_arch(arch));
  std::string text(e.variant);
  for (const auto& c : e.variants)
    if (c.variant.name == e.variant) text += " x" + std::to_string(c.plan->launch.grid.x);
  return text;
}

TEST(Softmax, TheGpuRowFollowsTheLengthOfARow) {
  EXPECT_EQ(chosen({100, 256}, {256, 1}, DType::bfloat16), "in_registers x25");  // a warp a row
  EXPECT_EQ(chosen({100, 8192}, {8192, 1}, DType::float32), "in_registers x100");
  EXPECT_EQ(chosen({100, 8200}, {8200, 1}, DType::float32), "cluster x200");
  EXPECT_EQ(chosen({100, 131072}, {131072, 1}, DType::bfloat16), "cluster x800");
  EXPECT_EQ(chosen({100, 131073}, {131080, 1}, DType::bfloat16), "online x100");
  EXPECT_EQ(chosen({100, 8200}, {8201, 1}, DType::float32), "online x100");
  EXPECT_EQ(chosen({100, 256}, {1, 100}, DType::float32), "block x100");
}

TEST(Softmax, AGpuWithoutClustersTakesAnotherRow) {
  EXPECT_EQ(chosen({100, 8200}, {8200, 1}, DType::float32, "sm_90a"), "cluster x200");
  EXPECT_EQ(chosen({100, 8200}, {8200, 1}, DType::float32, "sm_80"), "online x100");
  EXPECT_EQ(chosen({100, 8200}, {8200, 1}, DType::float32, "sm_89"), "online x100");
}

}  // namespace
}  // namespace tensorcraft

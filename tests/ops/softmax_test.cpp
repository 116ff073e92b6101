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

TEST_P(SoftmaxOnTheHost, ABoolMaskHidesWhateverLiesBehindIt) {
  Tensor x(DType::float32, {2, 3}), mask(DType::bool_, {3});
  const float values[] = {1.0f, std::nanf(""), 1.0f, 2.0f, kInfinity, 2.0f};
  const uint8_t keep[] = {1, 0, 1};
  x.copy_from_host(values, sizeof(values));
  mask.copy_from_host(keep, sizeof(keep));
  const Tensor y = softmax(x, {.mask = mask, .variant = GetParam()});
  const Tensor logs = log_softmax(x, {.mask = mask, .variant = GetParam()});
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(y.data_as<float>()[i], i % 3 == 1 ? 0.0f : 0.5f) << i;
    EXPECT_FLOAT_EQ(logs.data_as<float>()[i], i % 3 == 1 ? -kInfinity : -std::log(2.0f)) << i;
  }
}

TEST_P(SoftmaxOnTheHost, ARowOfWhichNothingIsLeftIsZero) {
  Tensor x(DType::float32, {2, 2}), mask(DType::bool_, {2, 1});
  const float values[] = {1.0f, 2.0f, -kInfinity, -kInfinity};
  const uint8_t keep[] = {0, 1};
  x.copy_from_host(values, sizeof(values));
  mask.copy_from_host(keep, sizeof(keep));
  const Tensor y = softmax(x, {.mask = mask, .variant = GetParam()});
  const Tensor logs = log_softmax(x, {.mask = mask, .variant = GetParam()});
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(y.data_as<float>()[i], 0.0f) << i;
    EXPECT_EQ(logs.data_as<float>()[i], -kInfinity) << i;
  }
}

TEST_P(SoftmaxOnTheHost, ASumOfExponentialsKnowsInfinities) {
  Tensor x(DType::float32, {4, 2});
  const float values[] = {-kInfinity, -kInfinity,    kInfinity, 1.0f,
                          1.0f,       std::nanf(""), 1e30f,     1e30f};
  x.copy_from_host(values, sizeof(values));
  const Tensor y = logsumexp(x, {.variant = GetParam()});
  EXPECT_EQ(y.shape(), Dims({4}));
  EXPECT_EQ(y.data_as<float>()[0], -kInfinity);
  EXPECT_EQ(y.data_as<float>()[1], kInfinity);
  EXPECT_TRUE(std::isnan(y.data_as<float>()[2]));
  EXPECT_EQ(y.data_as<float>()[3], 1e30f);
  EXPECT_EQ(logsumexp(x, {.axis = 0, .keepdims = true, .variant = GetParam()}).shape(),
            Dims({1, 2}));
}

TEST(Softmax, BadArgumentsAreNamedWithTheirValues) {
  const Tensor x(DType::float32, {2, 3}), integers(DType::int8, {2, 3});
  expect_error(
      ErrorKind::type, [&] { softmax(integers); },
      "softmax: x: Dtype value [int8] not in the allowed options: [float32, float16, bfloat16]"
      "; tc.astype(x, tc.float32) converts it");
  EXPECT_THROW(softmax(x, {.axis = 2}), Error);
  EXPECT_THROW(softmax(x, {.axis = -3}), Error);
  EXPECT_THROW(softmax(x, {.scale = kInfinity}), Error);
  EXPECT_THROW(softmax(x, {.mask = integers}), Error);
  const Tensor wide(DType::bool_, {2, 4}), whole(DType::float32, {2, 3});
  expect_error(
      ErrorKind::value, [&] { log_softmax(x, {.mask = wide}); },
      "log_softmax: mask must broadcast to x: shapes [2, 4] and [2, 3] do not broadcast: dimension "
      "1 is 4 and 3");
  EXPECT_THROW(softmax(whole, x, {.mask = whole.view().slice(0, 0, 1)}), Error) << "out is read";
  EXPECT_THROW(logsumexp(whole, x), Error);
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
    if (c.variant.name == e.variant) text += " x" + std::to_string(c.plan->first().launch.grid.x);
  return text;
}

TEST(Softmax, TheGpuRowFollowsTheLengthOfARow) {
  EXPECT_NE(chosen({3, 0}, {1, 1}, DType::float32), "")
      << "rows without elements are explained too";
  EXPECT_EQ(chosen({100, 256}, {256, 1}, DType::bfloat16), "in_registers x25");  // a warp a row
  EXPECT_EQ(chosen({100, 1028}, {1028, 1}, DType::float32), "in_registers x100");
  EXPECT_EQ(chosen({100, 8192}, {8192, 1}, DType::float32), "in_registers x100");
  EXPECT_EQ(chosen({5000, 16384}, {16384, 1}, DType::float32), "staged x5000");
  EXPECT_EQ(chosen({100, 131072}, {131072, 1}, DType::bfloat16), "staged x400");
  EXPECT_EQ(chosen({5000, 131072}, {131072, 1}, DType::bfloat16), "persistent x132");
  EXPECT_EQ(chosen({5000, 131072}, {131072, 1}, DType::float32), "persistent x136");
  EXPECT_EQ(chosen({100, 16385}, {16388, 1}, DType::float32), "cluster x400");
  EXPECT_EQ(chosen({100, 131073}, {131080, 1}, DType::bfloat16), "online x100");
  EXPECT_EQ(chosen({100, 8200}, {8201, 1}, DType::float32), "online x100");
  EXPECT_EQ(chosen({100, 256}, {1, 100}, DType::float32), "block x100");
}

TEST(LogSumExp, ARowWithoutEndIsRefused) {
  const Tensor one(DType::float32, {3, 1});
  expect_error(
      ErrorKind::unsupported, [&] { logsumexp(one.view().broadcast_to({3, int64_t(1) << 40})); },
      "logsumexp: x: the axis must have fewer than 2^30 elements, got shape [3, 1099511627776]");
}

TEST(LogSumExp, ALongRowIsReadOnceWithoutACluster) {
  alignas(64) static char memory[64];
  const TensorView x(memory, DType::bfloat16, {100, 131072}, Device::cpu()),
      out(memory, DType::bfloat16, {100}, Device::cpu());
  const auto e = find_operator("logsumexp")
                     .explain({&out, 1}, {.inputs = {&x, 1}}, device_info_of_arch("sm_90a"));
  EXPECT_EQ(e.variant, "online");
}

TEST(Softmax, AGpuWithoutClustersTakesAnotherRow) {
  EXPECT_EQ(chosen({100, 8200}, {8200, 1}, DType::float32, "sm_90a"), "staged x100");
  EXPECT_EQ(chosen({100, 20000}, {20000, 1}, DType::float32, "sm_80"), "online x100");
  EXPECT_EQ(chosen({100, 20000}, {20000, 1}, DType::float32, "sm_89"), "online x100");
}

}  // namespace
}  // namespace tensorcraft

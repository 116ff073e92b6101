// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/norm/norm.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;
using test::normal_tensor;
using test::values;

void expect_near(const Tensor& got, const std::vector<float>& expected, float tolerance) {
  ASSERT_EQ(got.size(), int64_t(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(got.data_as<float>()[i], expected[i], tolerance) << "element " << i;
}

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments_of(const float* row, int64_t n) {
  Moments m;
  for (int64_t i = 0; i < n; ++i) m.mean += row[i] / double(n);
  for (int64_t i = 0; i < n; ++i) m.variance += (row[i] - m.mean) * (row[i] - m.mean) / double(n);
  return m;
}

class LayerNormOnTheHost : public ::testing::TestWithParam<std::string_view> {};

TEST_P(LayerNormOnTheHost, AMeanFarAboveTheDeviationCostsNoDigits) {
  std::mt19937 random(3);
  const Tensor x = normal_tensor({4, 1000}, random, 1e4f, 1);
  const auto result = layer_norm(x, {.return_stats = true, .variant = GetParam()});
  for (int64_t row = 0; row < 4; ++row) {
    const float* values = x.data_as<float>() + row * 1000;
    const auto [m, v] = moments_of(values, 1000);
    EXPECT_NEAR(result.mean.data_as<float>()[row], m, 1e-3);
    EXPECT_NEAR(result.rstd.data_as<float>()[row], 1 / std::sqrt(v + 1e-5), 1e-5);
    for (int i = 0; i < 1000; ++i)
      ASSERT_NEAR(result.out.data_as<float>()[row * 1000 + i],
                  (values[i] - m) / std::sqrt(v + 1e-5), 2e-5);
  }
}

TEST_P(LayerNormOnTheHost, ConstantRowsBecomeTheBias) {
  std::mt19937 random(4);
  const Tensor x = normal_tensor({3, 50}, random, 7, 0), bias = normal_tensor({50}, random);
  const Tensor y = layer_norm(x, {.bias = bias.view(), .variant = GetParam()}).out;
  for (int row = 0; row < 3; ++row)
    for (int i = 0; i < 50; ++i)
      EXPECT_EQ(y.data_as<float>()[row * 50 + i], bias.data_as<float>()[i]);
}

TEST_P(LayerNormOnTheHost, AFusedActivationEqualsOneAfterwards) {
  std::mt19937 random(6);
  const Tensor x = normal_tensor({5, 60}, random);
  const Tensor plain = layer_norm(x, {.variant = GetParam()}).out;
  const auto with = [&](Activation a) {
    return layer_norm(x, {.activation = a, .variant = GetParam()}).out;
  };
  std::vector<float> relu, gelu, gelu_tanh, silu;
  for (const float v : values(plain)) {
    relu.push_back(v > 0 ? v : 0);
    gelu.push_back(float(0.5 * v * (1 + std::erf(v / std::sqrt(2.0)))));
    gelu_tanh.push_back(
        float(0.5 * v * (1 + std::tanh(0.7978845608 * (v + 0.044715 * v * v * v)))));
    silu.push_back(float(v / (1 + std::exp(-double(v)))));
  }
  expect_near(with(Activation::relu), relu, 1e-6f);
  expect_near(with(Activation::gelu), gelu, 2e-6f);
  expect_near(with(Activation::gelu_tanh), gelu_tanh, 2e-6f);
  expect_near(with(Activation::silu), silu, 2e-6f);
}

INSTANTIATE_TEST_SUITE_P(Variants, LayerNormOnTheHost, ::testing::Values("cpu", "reference"),
                         [](const auto& info) { return std::string(info.param); });

TEST(LayerNorm, ReturnsOnlyWhatIsAskedFor) {
  std::mt19937 random(8);
  const Tensor x = normal_tensor({2, 3, 8}, random);
  const auto plain = layer_norm(x);
  EXPECT_EQ(plain.mean.size() + plain.rstd.size() + plain.residual_out.size(), 0);
  const auto all = layer_norm(x, {.residual = x.view(), .return_stats = true});
  EXPECT_EQ(all.mean.shape(), Dims({2, 3}));
  EXPECT_EQ(all.rstd.shape(), Dims({2, 3}));
  EXPECT_EQ(all.residual_out.shape(), x.shape());
}

TEST(LayerNorm, HasTheNameOfTheFusedForm) {
  EXPECT_EQ(find_operator("fused_layer_norm_activation").description().name, "layer_norm");
}

TEST(LayerNorm, SaysWhatIsWrong) {
  const Tensor x(DType::float32, {2, 8}), y(DType::float32, {2, 7}), half(DType::float16, {8}),
      ids(DType::int32, {2, 8}), empty(DType::float32, {2, 0});
  expect_error(
      ErrorKind::value, [&] { layer_norm(x, x, {.residual_out = x.view()}); },
      "layer_norm: residual_out overlaps the memory of out; give it memory of its own");
  expect_error(
      ErrorKind::value, [&] { layer_norm(empty, {.return_stats = true}); },
      "layer_norm: rows of 0 elements have no mean, got x of shape [2, 0]");
  EXPECT_THROW(layer_norm(ids), Error);
  EXPECT_THROW(layer_norm(x, {.bias = half.view()}), Error);
  EXPECT_THROW(layer_norm(x, {.residual = y.view()}), Error);
}

// Explains what an H200 would run, without one.
op::Explanation explain_on_gpu(DType dtype, int64_t rows, int64_t cols, int64_t stride) {
  alignas(64) static char memory[64];
  const TensorView t(memory, dtype, {rows, cols}, {cols * stride, stride}, Device::cpu());
  const std::array<op::Value, 6> options;
  return find_operator("layer_norm")
      .explain(std::span(&t, 1), {.inputs = std::span(&t, 1), .options = options},
               device_info_of_arch("sm_90a"));
}

std::string reason(const op::Explanation& e, std::string_view variant) {
  for (const auto& c : e.variants)
    if (c.variant.name == variant) return c.accepted ? "accepted" : c.reason;
  return "no such row";
}

TEST(LayerNorm, EachGpuRowSaysWhyItDeclines) {
  EXPECT_EQ(explain_on_gpu(DType::bfloat16, 8192, 4096, 1).variant, "in_registers");
  EXPECT_EQ(explain_on_gpu(DType::float32, 3, 1025, 1).variant, "in_registers");
  EXPECT_EQ(explain_on_gpu(DType::bfloat16, 8, 65536, 1).variant, "staged");
  EXPECT_EQ(explain_on_gpu(DType::bfloat16, 8, 65537, 1).variant, "block");
  EXPECT_EQ(reason(explain_on_gpu(DType::float32, 8, 20000, 1), "in_registers"),
            "rows of more than 16384 elements do not fit the registers");
  EXPECT_EQ(reason(explain_on_gpu(DType::float32, 8, 33, 1), "vectorized"),
            "rows must start at 16-byte boundaries and be a multiple of 16 bytes long");
  for (const auto* name : {"in_registers", "vectorized"})
    EXPECT_EQ(reason(explain_on_gpu(DType::float32, 8, 64, 2), name),
              "the last axis must have stride 1");
}

TEST(LayerNorm, ABlockOfShortRowsHasSeveral) {
  const auto grid = [](int64_t rows, int64_t cols) {
    for (const auto& c : explain_on_gpu(DType::bfloat16, rows, cols, 1).variants)
      if (c.variant.name == "in_registers") return c.plan->first().launch.grid.x;
    return 0u;
  };
  EXPECT_EQ(grid(100, 8192), 100u);
  EXPECT_EQ(grid(104, 384), 13u);  // 16 threads of 3 accesses hold a row
  EXPECT_EQ(grid(105, 384), 14u);
  EXPECT_EQ(grid(100, 512), 25u);
  EXPECT_EQ(grid(160, 64), 10u);
}

}  // namespace
}  // namespace tensorcraft

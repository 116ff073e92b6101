// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/rms_norm/rms_norm.hpp"

#include "tensorcraft/op/host/code_rows.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;

Tensor random_tensor(const Dims& shape, std::mt19937& random) {
  Tensor t(DType::float32, shape);
  std::normal_distribution<float> normal(0.5f, 2);
  for (int64_t i = 0; i < t.size(); ++i) t.data_as<float>()[i] = normal(random);
  return t;
}

std::vector<float> values(const Tensor& t) {
  return {t.data_as<float>(), t.data_as<float>() + t.size()};
}

class RmsNormOnTheHost : public ::testing::TestWithParam<std::string_view> {};

TEST_P(RmsNormOnTheHost, DividesByTheRootOfTheMeanSquare) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 100; ++i) {
    const int64_t rows = 1 + random() % 4, cols = 1 + random() % 2000;
    const Tensor x = random_tensor({rows, cols}, random), weight = random_tensor({cols}, random);
    const float eps = i % 2 ? 1e-6f : 0.3f;
    const Tensor y = rms_norm(x, {.weight = weight.view(), .eps = eps, .variant = GetParam()}).out;
    for (int64_t row = 0; row < rows; ++row) {
      const float* in = x.data_as<float>() + row * cols;
      double squares = 0;
      for (int64_t j = 0; j < cols; ++j) squares += double(in[j]) * in[j];
      const double rms = std::sqrt(squares / double(cols) + double(eps));
      for (int64_t j = 0; j < cols; ++j) {
        const double expected = in[j] / rms * weight.data_as<float>()[j];
        ASSERT_NEAR(y.data_as<float>()[row * cols + j], expected, 1e-5 + 1e-5 * std::abs(expected));
      }
    }
  }
}

TEST_P(RmsNormOnTheHost, RowsGetAMeanSquareOfOne) {
  std::mt19937 random(2);
  const Tensor y = rms_norm(random_tensor({10, 4096}, random), {.variant = GetParam()}).out;
  for (int row = 0; row < 10; ++row) {
    double squares = 0;
    for (int i = 0; i < 4096; ++i) squares += std::pow(y.data_as<float>()[row * 4096 + i], 2);
    EXPECT_NEAR(squares / 4096, 1, 1e-5);
  }
}

TEST_P(RmsNormOnTheHost, AResidualEqualsASeparateAddition) {
  std::mt19937 random(3);
  const Tensor x = random_tensor({6, 77}, random), residual = random_tensor({6, 77}, random);
  Tensor sum(DType::float32, {6, 77});
  for (int64_t i = 0; i < sum.size(); ++i)
    sum.data_as<float>()[i] = x.data_as<float>()[i] + residual.data_as<float>()[i];
  const auto fused = rms_norm(x, {.residual = residual.view(), .variant = GetParam()});
  EXPECT_EQ(values(fused.residual_out), values(sum));
  const auto separate = values(rms_norm(sum, {.variant = GetParam()}).out);
  for (size_t i = 0; i < separate.size(); ++i)
    ASSERT_NEAR(fused.out.data_as<float>()[i], separate[i], 1e-6);
}

TEST_P(RmsNormOnTheHost, OutputsMayReplaceXAndResidual) {
  std::mt19937 random(4);
  Tensor x = random_tensor({4, 33}, random), residual = random_tensor({4, 33}, random);
  const auto expected = rms_norm(x, {.residual = residual.view(), .variant = GetParam()});
  rms_norm(x, x,
           {.residual = residual.view(), .residual_out = residual.view(), .variant = GetParam()});
  EXPECT_EQ(values(x), values(expected.out));
  EXPECT_EQ(values(residual), values(expected.residual_out));
}

TEST_P(RmsNormOnTheHost, CodesAreThoseOfTheFloat32Result) {
  std::mt19937 random(11);
  const Tensor x = random_tensor({7, 333}, random), weight = random_tensor({333}, random);
  const Tensor y = rms_norm(x, {.weight = weight.view(), .variant = GetParam()}).out;
  for (const DType dtype : {DType::float8_e4m3fn, DType::float8_e5m2, DType::int8})
    for (const bool per_token : {false, true}) {
      const auto codes = rms_norm(x, {.weight = weight.view(),
                                      .out_dtype = dtype,
                                      .scale = per_token ? std::nullopt : std::optional(0.02f),
                                      .per_token = per_token,
                                      .variant = GetParam()});
      const Tensor expected(dtype, x.shape()), scales(DType::float32, {7});
      const host::CodeRows rows(expected, per_token ? std::optional(scales.view()) : std::nullopt,
                                0.02f);
      for (int64_t row = 0; row < 7; ++row) rows.commit(row, y.data_as<float>() + row * 333);
      EXPECT_EQ(std::memcmp(codes.out.data(), expected.data(), size_t(x.size())), 0) << dtype;
      EXPECT_EQ(codes.scales.size(), per_token ? 7 : 0);
      if (!per_token) continue;
      EXPECT_EQ(values(codes.scales), values(scales)) << dtype;
    }
}

TEST(RmsNorm, SaysWhatIsWrongAboutCodes) {
  const Tensor x(DType::float32, {2, 8}), out(DType::int8, {2, 8}), scales(DType::float32, {2});
  expect_error(
      ErrorKind::type, [&] { rms_norm(x, {.out_dtype = DType::int32}); },
      "rms_norm: out_dtype must be float8_e4m3fn, float8_e5m2, int8 or that of x, float32, got "
      "int32");
  expect_error(
      ErrorKind::value, [&] { rms_norm(x, {.out_dtype = DType::int8}); },
      "rms_norm: out_dtype int8 needs either scale or per_token=True, and not both");
  expect_error(
      ErrorKind::value,
      [&] { rms_norm(x, {.out_dtype = DType::int8, .scale = 1, .per_token = true}); },
      "rms_norm: out_dtype int8 needs either scale or per_token=True, and not both");
  expect_error(
      ErrorKind::value, [&] { rms_norm(x, {.scale = 1}); },
      "rms_norm: scale and per_token are of codes; give out_dtype too");
  expect_error(
      ErrorKind::value, [&] { rms_norm(x, {.out_dtype = DType::int8, .scale = 0}); },
      "rms_norm: scale must be finite and above 0, got 0");
  expect_error(
      ErrorKind::value, [&] { rms_norm(out, x, {.out_dtype = DType::int8, .per_token = true}); },
      "rms_norm: scales is written where per_token is set; give both or none");
}

INSTANTIATE_TEST_SUITE_P(Variants, RmsNormOnTheHost, ::testing::Values("cpu", "reference"),
                         [](const auto& info) { return std::string(info.param); });

TEST(RmsNorm, SaysWhatIsWrong) {
  const Tensor x(DType::float32, {2, 8}), w(DType::float32, {7}), number(DType::float32, {}),
      out(DType::float32, {2, 8}), sum(DType::float32, {2, 8}), row(DType::float32, {8});
  expect_error(
      ErrorKind::value, [&] { rms_norm(number); },
      "rms_norm: x: expected at least 1 dimension, got shape []");
  expect_error(
      ErrorKind::value, [&] { rms_norm(x, {.eps = -1}); },
      "rms_norm: eps must be at least 0, got -1");
  expect_error(
      ErrorKind::value, [&] { rms_norm(x, {.weight = w.view()}); },
      "rms_norm: weight: Size mismatch for shape#0('cols'): expected 8 but got 7");
  expect_error(
      ErrorKind::value, [&] { rms_norm(out, x, {.residual_out = sum.view()}); },
      "rms_norm: residual_out is x + residual; give residual too");
  expect_error(
      ErrorKind::value, [&] { rms_norm(row, x.view().select(0, 0), {.weight = row.view()}); },
      "rms_norm: an output overlaps the memory of weight; give it memory of its own");
}

}  // namespace
}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/batch_norm/batch_norm.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace tensorcraft {
namespace {

using test::at;
using test::expect_error;
using test::normal_tensor;

// Above 0, as a variance is.
Tensor random_variances(int64_t channels, std::mt19937& random) {
  Tensor t = normal_tensor({channels}, random);
  for (int64_t i = 0; i < channels; ++i)
    t.data_as<float>()[i] = 0.1f + std::abs(t.data_as<float>()[i]);
  return t;
}

Tensor copy_of(const Tensor& t) {
  Tensor copy(t.dtype(), t.shape());
  std::copy_n(t.data_as<float>(), t.size(), copy.data_as<float>());
  return copy;
}

void expect_near(const Tensor& got, const Tensor& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (int64_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(at(got, i), at(expected, i), tolerance * (1 + std::abs(double(at(expected, i)))))
        << "element " << i;
}

class BatchNorm : public ::testing::TestWithParam<std::string_view> {};

TEST_P(BatchNorm, TrainingGivesEachChannelMeanZeroAndVarianceOne) {
  std::mt19937 random(1);
  for (const int64_t width : {1, 7, 40}) {
    const Tensor x = normal_tensor({6, 3, 5, width}, random, 20, 3);
    const auto r = batch_norm(x, {.training = true, .variant = GetParam()});
    const int64_t plane = 5 * width;
    for (int64_t c = 0; c < 3; ++c) {
      double sum = 0, squares = 0, x_sum = 0;
      for (int64_t n = 0; n < 6; ++n)
        for (int64_t s = 0; s < plane; ++s) {
          const int64_t i = (n * 3 + c) * plane + s;
          sum += at(r.out, i), squares += std::pow(at(r.out, i), 2), x_sum += at(x, i);
        }
      const auto count = double(6 * plane);
      EXPECT_NEAR(sum / count, 0, 1e-5);
      EXPECT_NEAR(squares / count, 1, 1e-4);
      EXPECT_NEAR(at(r.mean, c), x_sum / count, 1e-4);
    }
  }
}

TEST_P(BatchNorm, AFarMeanCostsNoDigits) {
  std::mt19937 random(2);
  const Tensor x = normal_tensor({8, 2, 64}, random, 1e4f, 1);
  const auto got = batch_norm(x, {.training = true, .variant = GetParam()});
  const auto exact = batch_norm(x, {.training = true, .variant = "reference"});
  expect_near(got.rstd, exact.rstd, 1e-5);
  expect_near(got.out, exact.out, 2e-4);
}

TEST_P(BatchNorm, NewRunningStatisticsBlendOldOnesWithTheBatch) {
  std::mt19937 random(3);
  const Tensor x = normal_tensor({4, 2, 9}, random, 3, 2), mean = normal_tensor({2}, random),
               var = random_variances(2, random);
  const auto r = batch_norm(x, {.running_mean = mean.view(),
                                .running_var = var.view(),
                                .training = true,
                                .momentum = 0.3f,
                                .variant = GetParam()});
  const double count = 36;
  for (int64_t c = 0; c < 2; ++c) {
    const double batch_var = 1 / std::pow(double(at(r.rstd, c)), 2) - 1e-5;
    EXPECT_NEAR(at(r.running_mean_out, c), 0.7 * at(mean, c) + 0.3 * at(r.mean, c), 1e-5);
    EXPECT_NEAR(at(r.running_var_out, c), 0.7 * at(var, c) + 0.3 * batch_var * count / (count - 1),
                1e-4);
  }
}

TEST_P(BatchNorm, RunningStatisticsMayBeReplacedAndXToo) {
  std::mt19937 random(4);
  const Tensor x = normal_tensor({4, 3, 8}, random), mean = normal_tensor({3}, random),
               var = random_variances(3, random);
  const BatchNormOptions options{.running_mean = mean.view(),
                                 .running_var = var.view(),
                                 .training = true,
                                 .variant = GetParam()};
  const auto expected = batch_norm(x, options);
  Tensor x_too = copy_of(x);
  auto in_place = options;
  in_place.running_mean_out = mean.view();
  in_place.running_var_out = var.view();
  batch_norm(x_too, x_too, in_place);
  expect_near(x_too, expected.out, 0);
  expect_near(mean, expected.running_mean_out, 0);
  expect_near(var, expected.running_var_out, 0);
}

// Inference with the statistics of the batch is what training computes.
TEST_P(BatchNorm, InferenceWithTheBatchStatisticsIsTraining) {
  std::mt19937 random(5);
  const Tensor x = normal_tensor({5, 4, 12}, random), weight = normal_tensor({4}, random),
               bias = normal_tensor({4}, random);
  const auto trained = batch_norm(
      x, {.weight = weight.view(), .bias = bias.view(), .training = true, .variant = GetParam()});
  Tensor var(DType::float32, {4});
  for (int64_t c = 0; c < 4; ++c)
    var.data_as<float>()[c] = float(1 / std::pow(double(at(trained.rstd, c)), 2) - 1e-5);
  const auto y = batch_norm(x, {.running_mean = trained.mean.view(),
                                .running_var = var.view(),
                                .weight = weight.view(),
                                .bias = bias.view(),
                                .variant = GetParam()});
  expect_near(y.out, trained.out, 1e-5);
  EXPECT_EQ(y.mean.size(), 0);
}

TEST_P(BatchNorm, AFusedActivationIsOneAfterwards) {
  std::mt19937 random(6);
  const Tensor x = normal_tensor({3, 5, 33}, random), mean = normal_tensor({5}, random),
               var = random_variances(5, random);
  BatchNormOptions options{
      .running_mean = mean.view(), .running_var = var.view(), .variant = GetParam()};
  const Tensor plain = batch_norm(x, options).out;
  const auto check = [&](Activation activation, const Tensor& expected) {
    options.activation = activation;
    expect_near(batch_norm(x, options).out, expected, 1e-5);
  };
  check(Activation::relu, relu(plain));
  check(Activation::silu, silu(plain));
  check(Activation::gelu, gelu(plain));
  check(Activation::gelu_tanh, gelu(plain, {.approximate = GeluApproximation::tanh}));
}

TEST_P(BatchNorm, ANaNStaysInItsChannel) {
  std::mt19937 random(7);
  Tensor x = normal_tensor({2, 3, 4}, random);
  x.data_as<float>()[4] = NAN;  // sample 0, channel 1
  const auto r = batch_norm(x, {.training = true, .variant = GetParam()});
  for (int64_t i = 0; i < x.size(); ++i) EXPECT_EQ(std::isnan(at(r.out, i)), i / 4 % 3 == 1) << i;
  EXPECT_TRUE(std::isnan(at(r.mean, 1)) && std::isnan(at(r.rstd, 1)));
}

// The slope of sum(out * direction) along each x and each parameter.
TEST_P(BatchNorm, BackwardIsTheSlopeOfForward) {
  std::mt19937 random(8);
  const Dims shape{3, 2, 5};
  const Tensor x = normal_tensor(shape, random), direction = normal_tensor(shape, random),
               weight = normal_tensor({2}, random), bias = normal_tensor({2}, random);
  const auto loss = [&](const Tensor& at_x, const Tensor& at_weight, const Tensor& at_bias) {
    const auto r = batch_norm(at_x, {.weight = at_weight.view(),
                                     .bias = at_bias.view(),
                                     .training = true,
                                     .variant = "reference"});
    double sum = 0;
    for (int64_t i = 0; i < r.out.size(); ++i) sum += double(at(r.out, i)) * at(direction, i);
    return sum;
  };
  const auto forward = batch_norm(x, {.weight = weight.view(), .training = true});
  const auto r = batch_norm_backward(direction, x,
                                     {.weight = weight.view(),
                                      .mean = forward.mean.view(),
                                      .rstd = forward.rstd.view(),
                                      .variant = GetParam()});
  constexpr float kStep = 1e-2f;
  const auto slope = [&](const Tensor& t, int64_t i, auto loss_with) {
    Tensor up = copy_of(t), down = copy_of(t);
    up.data_as<float>()[i] += kStep;
    down.data_as<float>()[i] -= kStep;
    return (loss_with(up) - loss_with(down)) / (2 * double(kStep));
  };
  for (int64_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(at(r.grad_input, i),
                slope(x, i, [&](const Tensor& t) { return loss(t, weight, bias); }), 2e-3);
  for (int64_t c = 0; c < 2; ++c) {
    EXPECT_NEAR(at(r.grad_weight, c),
                slope(weight, c, [&](const Tensor& t) { return loss(x, t, bias); }), 1e-3);
    EXPECT_NEAR(at(r.grad_bias, c),
                slope(bias, c, [&](const Tensor& t) { return loss(x, weight, t); }), 1e-3);
  }
}

TEST_P(BatchNorm, GradInputMayReplaceGrad) {
  std::mt19937 random(9);
  const Tensor x = normal_tensor({3, 2, 20}, random), mean = normal_tensor({2}, random),
               rstd = random_variances(2, random);
  Tensor grad = normal_tensor({3, 2, 20}, random);
  const BatchNormBackwardOptions options{
      .mean = mean.view(), .rstd = rstd.view(), .variant = GetParam()};
  const auto expected = batch_norm_backward(grad, x, options);
  batch_norm_backward(grad, grad, x, options);
  expect_near(grad, expected.grad_input, 0);
}

INSTANTIATE_TEST_SUITE_P(Variants, BatchNorm, ::testing::Values("cpu", "reference"),
                         [](const auto& info) { return std::string(info.param); });

// The folded form, one factor and one addend, which the GPU's rungs use, against the plain formula.
TEST(BatchNormFold, SimtDeviceFoldedEqualsUnfolded) {
  if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the emulator";
  std::mt19937 random(10);
  const Tensor x = normal_tensor({2, 3, 36}, random), mean = normal_tensor({3}, random),
               var = random_variances(3, random);
  const auto on_simt = [](const TensorView& t) { return t.at(t.data(), Device::simt()); };
  const auto unfolded = batch_norm(
      x, {.running_mean = mean.view(), .running_var = var.view(), .variant = "reference"});
  for (const std::string_view variant : {"planes", "naive"}) {
    Tensor y(DType::float32, x.shape());
    batch_norm(on_simt(y), on_simt(x),
               {.running_mean = on_simt(mean), .running_var = on_simt(var), .variant = variant});
    expect_near(y, unfolded.out, 1e-6);
  }
}

TEST(BatchNormChecks, SayWhatIsWrong) {
  const Tensor x(DType::float32, {2, 3, 4}), row(DType::float32, {4}), v(DType::float32, {3}),
      w(DType::float32, {2}), half(DType::bfloat16, {3}), one(DType::float32, {1, 3}),
      out(DType::float32, {2, 3, 4});
  const auto running = [&] {
    return BatchNormOptions{.running_mean = v.view(), .running_var = v.view()};
  };
  expect_error(
      ErrorKind::value, [&] { batch_norm(row, running()); },
      "batch_norm: x: expected at least 2 dimensions, batch and channels, got shape [4]");
  expect_error(
      ErrorKind::value, [&] { batch_norm(x); },
      "batch_norm: give running_mean and running_var; without them set training=True");
  expect_error(
      ErrorKind::value,
      [&] {
        batch_norm(x, {.running_mean = v.view(), .running_var = v.view(), .weight = w.view()});
      },
      "batch_norm: weight: Size mismatch for shape#0('channels'): expected 3 but got 2"
      "; weight is [2], expected [3]");
  expect_error(
      ErrorKind::type,
      [&] {
        batch_norm(x, {.running_mean = v.view(), .running_var = v.view(), .bias = half.view()});
      },
      "batch_norm: bias: DType mismatch: expected float32 but got bfloat16 (the dtype of "
      "running_mean)"
      "; tc.astype(bias, tc.float32) converts it");
  expect_error(
      ErrorKind::value, [&] { batch_norm(one, {.training = true}); },
      "batch_norm: statistics of a channel need at least 2 values, got x of shape [1, 3]");
  expect_error(
      ErrorKind::value, [&] { batch_norm(x, {.training = true, .momentum = 2}); },
      "batch_norm: momentum must be in [0, 1], got 2");
  expect_error(
      ErrorKind::value,
      [&] {
        auto o = running();
        o.eps = -1;
        batch_norm(x, o);
      },
      "batch_norm: eps must be at least 0, got -1");
  expect_error(
      ErrorKind::value,
      [&] {
        auto o = running();
        o.mean = w.view();
        batch_norm(out, x, o);
      },
      "batch_norm: mean, rstd and new running statistics are of training; set training=True, or "
      "give no such output");
  expect_error(
      ErrorKind::value,
      [&] { batch_norm(out, x, {.training = true, .running_var_out = v.view()}); },
      "batch_norm: new running statistics come from old ones; give running_mean and running_var "
      "too");
  expect_error(
      ErrorKind::value,
      [&] { batch_norm(out, x, {.weight = v.view(), .training = true, .mean = v.view()}); },
      "batch_norm: mean overlaps the memory of weight; give it memory of its own");
  expect_error(
      ErrorKind::value, [&] { batch_norm_backward(x, x, {}); },
      "batch_norm_backward: give mean and rstd, which batch_norm returned with training=True");
  expect_error(
      ErrorKind::value,
      [&] {
        batch_norm_backward(out, x, x,
                            {.mean = v.view(), .rstd = v.view(), .grad_weight = v.view()});
      },
      "batch_norm_backward: grad_weight overlaps the memory of mean; give it memory of its own");
}

}  // namespace
}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/group_norm/group_norm.hpp"

#include "tensorcraft/ops/norm/norm.hpp"
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

class GroupNorm : public ::testing::TestWithParam<std::string_view> {};

TEST_P(GroupNorm, EachGroupGetsMeanZeroAndVarianceOne) {
  std::mt19937 random(1);
  const Tensor x = normal_tensor({3, 6, 5, 9}, random, 50, 4);
  for (const int64_t groups : {1, 2, 3, 6}) {
    const Tensor y = group_norm(x, {.num_groups = groups, .variant = GetParam()});
    const int64_t cols = 6 / groups * 45;
    for (int64_t row = 0; row < 3 * groups; ++row) {
      double sum = 0, squares = 0;
      for (int64_t i = row * cols; i < (row + 1) * cols; ++i)
        sum += at(y, i), squares += std::pow(at(y, i), 2);
      EXPECT_NEAR(sum / double(cols), 0, 1e-5);
      EXPECT_NEAR(squares / double(cols), 1, 1e-4);
    }
  }
}

TEST_P(GroupNorm, OneGroupWithoutWeightsIsLayerNormOverAllButTheBatch) {
  std::mt19937 random(2);
  const Tensor x = normal_tensor({4, 3, 7}, random);
  const Tensor y = group_norm(x, {.variant = GetParam()});
  const Tensor rows = layer_norm(x.view().reshape({4, 21})).out;
  for (int64_t i = 0; i < y.size(); ++i) EXPECT_NEAR(at(y, i), at(rows, i), 1e-5);
}

TEST_P(GroupNorm, WeightAndBiasAreOfChannels) {
  std::mt19937 random(3);
  const Tensor x = normal_tensor({2, 4, 3}, random), weight = normal_tensor({4}, random),
               bias = normal_tensor({4}, random);
  const Tensor plain = group_norm(x, {.num_groups = 2, .variant = GetParam()});
  const Tensor y = group_norm(
      x, {.num_groups = 2, .weight = weight.view(), .bias = bias.view(), .variant = GetParam()});
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t c = i / 3 % 4;
    EXPECT_NEAR(at(y, i), at(plain, i) * at(weight, c) + at(bias, c), 1e-5);
  }
}

TEST_P(GroupNorm, ANaNStaysInItsGroupAndOutMayBeX) {
  std::mt19937 random(4);
  Tensor x = normal_tensor({2, 4, 5}, random);
  x.data_as<float>()[12] = NAN;  // sample 0, channel 2: group 1
  group_norm(x, x, {.num_groups = 2, .variant = GetParam()});
  for (int64_t i = 0; i < x.size(); ++i) EXPECT_EQ(std::isnan(at(x, i)), i >= 10 && i < 20) << i;
}

INSTANTIATE_TEST_SUITE_P(Variants, GroupNorm, ::testing::Values("cpu", "reference"),
                         [](const auto& info) { return std::string(info.param); });

TEST(GroupNormChecks, SayWhatIsWrong) {
  const Tensor x(DType::float32, {2, 6, 4}), row(DType::float32, {4}), w(DType::float32, {5}),
      one(DType::float32, {1, 6}), vector(DType::float32, {6});
  expect_error(
      ErrorKind::value, [&] { group_norm(row, {}); },
      "group_norm: x: expected at least 2 dimensions, batch and channels, got shape [4]");
  for (const int64_t groups : {0, 4, -1})
    expect_error(
        ErrorKind::value, [&] { group_norm(x, {.num_groups = groups}); },
        "group_norm: num_groups must divide the 6 channels of x, got " + std::to_string(groups));
  expect_error(
      ErrorKind::value, [&] { group_norm(x, {.weight = w.view()}); },
      "group_norm: weight: Size mismatch for shape#0('channels'): expected 6 but got 5"
      "; weight is [5], expected [6]");
  expect_error(
      ErrorKind::value, [&] { group_norm(x, {.eps = -1}); },
      "group_norm: eps must be at least 0, got -1");
  expect_error(
      ErrorKind::value,
      [&] { group_norm(vector.view().reshape({1, 6}), one, {.bias = vector.view()}); },
      "group_norm: out overlaps the memory of bias; they must be the same tensor or apart");
}

}  // namespace
}  // namespace tensorcraft

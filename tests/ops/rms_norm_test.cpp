// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/norm/norm.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <string_view>

namespace tensorcraft {
namespace {

using test::normal_tensor;

class RmsNormOnTheHost : public ::testing::TestWithParam<std::string_view> {};

TEST_P(RmsNormOnTheHost, RowsGetAMeanSquareOfOne) {
  std::mt19937 random(2);
  const Tensor y =
      rms_norm(normal_tensor({10, 4096}, random, 0.5f, 2), {.variant = GetParam()}).out;
  for (int row = 0; row < 10; ++row) {
    double squares = 0;
    for (int i = 0; i < 4096; ++i) squares += std::pow(y.data_as<float>()[row * 4096 + i], 2);
    EXPECT_NEAR(squares / 4096, 1, 1e-5);
  }
}

// x and residual are halves of each row of one buffer, and so are the outputs.
TEST(RmsNorm, WritesTheSlicesThatItReads) {
  std::mt19937 random(3);
  for (const Device device : test::places()) {
    const Tensor packed = normal_tensor({5, 2 * 64}, random, 0, 1, device);
    const TensorView x = packed.view().slice(1, 0, 64), residual = packed.view().slice(1, 64, 128);
    const RmsNormResult apart = rms_norm(x, {.residual = residual});
    rms_norm(x, x, {.residual = residual, .residual_out = residual});
    for (int64_t row = 0; row < 5; ++row)
      for (int64_t i = 0; i < 64; ++i) {
        ASSERT_EQ(test::at(packed, row * 128 + i), test::at(apart.out, row * 64 + i)) << device;
        ASSERT_EQ(test::at(packed, row * 128 + 64 + i), test::at(apart.residual_out, row * 64 + i));
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, RmsNormOnTheHost, ::testing::Values("cpu", "reference"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/l2_normalize/l2_normalize.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

namespace tensorcraft {
namespace {

TEST(L2Normalize, RowsGetLengthOne) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 3);
  for (int i = 0; i < 100; ++i) {
    const int64_t cols = 1 + random() % 900;
    Tensor x(DType::float32, {3, cols});
    for (int64_t e = 0; e < x.size(); ++e) x.data_as<float>()[e] = normal(random);
    const Tensor y = l2_normalize(x);
    for (int64_t row = 0; row < 3; ++row) {
      double squares = 0;
      for (int64_t e = row * cols; e < (row + 1) * cols; ++e)
        squares += std::pow(double(y.data_as<float>()[e]), 2);
      ASSERT_NEAR(squares, 1, 1e-5) << cols;
    }
  }
}

TEST(L2Normalize, AVectorShorterThanEpsIsDividedByEps) {
  Tensor x(DType::float32, {2});
  x.data_as<float>()[0] = 3;
  x.data_as<float>()[1] = 4;
  EXPECT_EQ(l2_normalize(x, {.eps = 10}).data_as<float>()[1], 0.4f);
}

// Explains what an H200 would run, without one.
op::Explanation explain_on_gpu(DType dtype, int64_t rows, int64_t cols, int64_t stride, float eps) {
  alignas(64) static char memory[64];
  const TensorView t(memory, dtype, {rows, cols}, {cols * stride, stride}, Device::cpu());
  const op::Value options[] = {int64_t(-1), double(eps)};
  return find_operator("l2_normalize")
      .explain(std::span(&t, 1), {.inputs = std::span(&t, 1), .options = options},
               device_info_of_arch("sm_90a"));
}

TEST(L2Normalize, InRegistersSaysWhyItRefuses) {
  const auto reason = [](int64_t cols, int64_t stride, float eps) {
    const auto e = explain_on_gpu(DType::float32, 8, cols, stride, eps);
    return e.variants[0].accepted ? "accepted" : e.variants[0].reason;
  };
  EXPECT_EQ(reason(384, 1, 1e-12f), "accepted");
  EXPECT_EQ(reason(384, 1, 0), "accepted");
  EXPECT_EQ(reason(384, 2, 0), "elements along the axis must be neighbours");
  EXPECT_EQ(reason(20000, 1, 0), "rows of more than 16384 elements do not fit the registers");
  EXPECT_EQ(reason(384, 1, 1e-40f), "1 / eps must be a finite float");
}

TEST(L2Normalize, ABlockOfShortRowsHasSeveral) {
  const auto grid = [](int64_t rows, int64_t cols) {
    return explain_on_gpu(DType::bfloat16, rows, cols, 1, 0)
        .variants[0]
        .plan->first()
        .launch.grid.x;
  };
  EXPECT_EQ(grid(100, 8192), 100u);
  EXPECT_EQ(grid(105, 384), 14u);  // 16 threads of 3 accesses hold a row
  EXPECT_EQ(grid(101, 512), 26u);
}

}  // namespace
}  // namespace tensorcraft

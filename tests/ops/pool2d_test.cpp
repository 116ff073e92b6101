// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/pool2d/pool2d.hpp"

#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace tensorcraft {
namespace {

Tensor image(const Dims& shape, std::vector<float> values) {
  Tensor t(DType::float32, shape);
  std::copy(values.begin(), values.end(), t.data_as<float>());
  return t;
}
std::vector<float> values_of(const Tensor& t) {
  return {t.data_as<float>(), t.data_as<float>() + t.size()};
}

TEST(Pool2d, WindowsStandSideBySideUnlessAStrideIsGiven) {
  const Tensor x = image({1, 1, 2, 4}, {1, 2, 3, 4, 8, 7, 6, 5});
  EXPECT_EQ(values_of(max_pool2d(x)), (std::vector<float>{8, 6}));
  EXPECT_EQ(values_of(avg_pool2d(x)), (std::vector<float>{4.5, 4.5}));
  EXPECT_EQ(values_of(max_pool2d(x, {.stride = Dims{1}})), (std::vector<float>{8, 7, 6}));
}

TEST(Pool2d, PaddingIsNeverTheMaximumAndCountsInAMeanUnlessToldOtherwise) {
  const Tensor x = image({1, 1, 1, 2}, {-1, -3});
  EXPECT_EQ(values_of(max_pool2d(x, {.window = {1, 3}, .stride = Dims{1}, .padding = {0, 1}})),
            (std::vector<float>{-1, -1}));
  AvgPool2dOptions mean{.window = {1, 3}, .stride = Dims{1}, .padding = {0, 1}};
  EXPECT_FLOAT_EQ(values_of(avg_pool2d(x, mean))[0], -4.0f / 3);
  mean.count_padding = false;
  EXPECT_EQ(values_of(avg_pool2d(x, mean)), (std::vector<float>{-2, -2}));
}

TEST(Pool2d, AWindowBesideTheImageHasNoElement) {
  const Tensor x = image({1, 1, 1, 1}, {5});
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(values_of(max_pool2d(x, {.window = {1}, .padding = {0, 1}})),
            (std::vector<float>{-infinity, 5, -infinity}));
  EXPECT_EQ(values_of(avg_pool2d(x, {.window = {1}, .padding = {0, 1}, .count_padding = false})),
            (std::vector<float>{0, 5, 0}));
}

TEST(Pool2d, AWindowMustFitThePaddedImage) {
  const Tensor x(DType::float32, {1, 1, 2, 9});
  test::expect_error_with(ErrorKind::value, "max_pool2d: the window covers 5 rows",
                          [&] { max_pool2d(x, {.window = {5}, .padding = 1}); });
  test::expect_error_with(ErrorKind::value, "avg_pool2d: window must be from 1",
                          [&] { avg_pool2d(x, {.window = {0}}); });
}

}  // namespace
}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/reduce/reduce.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;
using test::places;
using test::values;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <class T>
Tensor on(Device device, DType dtype, const Dims& shape, const std::vector<T>& values) {
  Tensor t(dtype, shape, device);
  t.copy_from_host(values.data(), t.nbytes());
  return t;
}
Tensor floats(Device device, const Dims& shape, const std::vector<float>& values) {
  return on(device, DType::float32, shape, values);
}

std::vector<float> random_floats(size_t n) {
  std::mt19937 random(7);
  std::normal_distribution<float> draw;
  std::vector<float> all(n);
  for (float& x : all) x = draw(random);
  return all;
}

TEST(Reduce, IntegersAddUpBeyondTheirOwnType) {
  const std::vector<int32_t> large(5000, 2147483647);
  const std::vector<int8_t> small(5000, -128);
  for (const Device d : places()) {
    EXPECT_EQ(values<int64_t>(sum(on(d, DType::int32, {5000}, large))),
              (std::vector<int64_t>{5000ll * 2147483647}));
    EXPECT_EQ(values<int64_t>(sum(on(d, DType::int8, {2, 2500}, small), {.axis = Dims{1}})),
              (std::vector<int64_t>{-320000, -320000}));
  }
}

TEST(Reduce, ANaNIsTheLargestAndTheSmallest) {
  for (const Device d : places()) {
    const Tensor x = floats(d, {3, 3}, {1, kNaN, 7, kNaN, 5, kNaN, 3, 2, 9});
    const auto largest = values<float>(max(x, {.axis = Dims{1}})),
               smallest = values<float>(min(x, {.axis = Dims{1}}));
    EXPECT_TRUE(std::isnan(largest[0]) && std::isnan(largest[1]) && largest[2] == 9);
    EXPECT_TRUE(std::isnan(smallest[0]) && std::isnan(smallest[1]) && smallest[2] == 2);
    EXPECT_EQ(values<int64_t>(argmax(x, {.axis = 1})), (std::vector<int64_t>{1, 0, 2}));
    EXPECT_EQ(values<int64_t>(argmax(x)), (std::vector<int64_t>{1}));
    EXPECT_EQ(values<uint8_t>(all(x)), (std::vector<uint8_t>{1}));
  }
}

TEST(Reduce, OfNoElements) {
  for (const Device d : places()) {
    const Tensor x(DType::float32, {2, 0}, d);
    EXPECT_EQ(values<float>(sum(x, {.axis = Dims{1}})), (std::vector<float>{0, 0}));
    EXPECT_TRUE(std::isnan(values<float>(mean(x))[0]) && std::isnan(values<float>(var(x))[0]));
    EXPECT_EQ(values<uint8_t>(any(x))[0], 0);
    EXPECT_EQ(values<uint8_t>(all(x))[0], 1);
    EXPECT_EQ(max(x, {.axis = Dims{0}}).shape(), Dims{0});
    expect_error(
        ErrorKind::value, [&] { max(x); },
        "max: x: axis 1 of shape [2, 0] must have at least one element: of none there is no max");
    expect_error(
        ErrorKind::value, [&] { argmax(x, {.axis = -1}); },
        "argmax: x: axis 1 of shape [2, 0] must have at least one element: of none there is no "
        "argmax");
  }
}

TEST(Reduce, RefusesAxesThatAreNotThere) {
  const Tensor x(DType::float32, {2, 3});
  expect_error(
      ErrorKind::index, [&] { sum(x, {.axis = Dims{2}}); }, "sum: axis must be in [-2, 2), got 2");
  expect_error(
      ErrorKind::value, [&] { mean(x, {.axis = Dims{1, -1}}); },
      "mean: axis -1 is named twice; each must be named once");
}

TEST(Reduce, TheSumOfSumsIsTheSumAndAxesComeInAnyOrder) {
  const auto numbers = random_floats(4 * 30 * 50);
  for (const Device d : places()) {
    const Tensor x = floats(d, {4, 30, 50}, numbers);
    const float whole = values<float>(sum(x))[0];
    for (const int64_t axis : {0, 1, 2})
      EXPECT_NEAR(values<float>(sum(sum(x, {.axis = Dims{axis}})))[0], whole, 1e-3f);
    EXPECT_EQ(values<float>(sum(x, {.axis = Dims{0, 2}, .keepdims = true})),
              values<float>(sum(x, {.axis = Dims{-1, 0}})));
    EXPECT_EQ(sum(x, {.axis = Dims{2, 0}, .keepdims = true}).shape(), (Dims{1, 30, 1}));
  }
}

TEST(Reduce, ReadsAViewThatRunsBackwards) {
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const TensorView backwards(x.data() + 5, DType::float32, {2, 3}, {-3, -1}, Device::cpu());
  EXPECT_EQ(values<float>(sum(backwards, {.axis = Dims{1}})), (std::vector<float>{15, 6}));
  EXPECT_EQ(values<int64_t>(argmax(backwards, {.axis = 1})), (std::vector<int64_t>{0, 0}));
}

// More elements than could be read in a lifetime, in the memory of three.
TEST(Reduce, AxesThatRepeatOneElementCostNothing) {
  std::vector<float> x = {1, 2, 6};
  const TensorView huge(x.data(), DType::float32, {int64_t(1) << 40, 3, 1 << 10}, {0, 1, 0},
                        Device::cpu());
  EXPECT_EQ(values<float>(sum(huge)), (std::vector<float>{9 * 0x1p50f}));
  EXPECT_EQ(values<float>(mean(huge)), (std::vector<float>{3}));
  EXPECT_FLOAT_EQ(values<float>(var(huge))[0], 14.0f / 3);
  EXPECT_EQ(values<float>(max(huge, {.axis = Dims{0, 2}})), x);
  EXPECT_EQ(values<int64_t>(argmax(huge.select(1, 2))), (std::vector<int64_t>{0}));
  const TensorView bytes(x.data(), DType::uint8, {int64_t(1) << 50}, {0}, Device::cpu());
  std::fill_n(reinterpret_cast<uint8_t*>(x.data()), 1, uint8_t(3));
  EXPECT_EQ(values<int64_t>(sum(bytes)), (std::vector<int64_t>{int64_t(3) << 50}));
}

TEST(Reduce, VarianceKeepsItsDigitsFarFromZero) {
  auto numbers = random_floats(70000);
  double mean_of = 0, squares = 0;
  for (float& x : numbers) x += 1e4f;
  for (const float x : numbers) mean_of += double(x) / 70000;
  for (const float x : numbers) squares += (x - mean_of) * (x - mean_of) / 70000;
  for (const Device d : places())
    EXPECT_NEAR(values<float>(var(floats(d, {70000}, numbers)))[0], squares, 1e-4 * squares) << d;
}

// Blocks that share an output finish in another order each time.
TEST(Reduce, RepeatsToTheBit) {
  const auto numbers = random_floats(70000);
  const Tensor x = floats(places().back(), {70000}, numbers);
  const auto first = values<float>(sum(x)), spread = values<float>(var(x));
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(values<float>(sum(x)), first);
    ASSERT_EQ(values<float>(var(x)), spread);
  }
}

}  // namespace
}  // namespace tensorcraft

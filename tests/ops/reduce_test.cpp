// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/reduce/reduce.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/permute/permute.hpp"
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

bool is_cpu(Device d) { return d == Device::cpu(); }

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

// Rows and columns, of lanes, warps and blocks.
TEST(Reduce, AProductOfPartsMayExceedFloat32) {
  struct Turns {
    std::vector<float> of;
    float product;  // of whole turns
  };
  const float least = std::numeric_limits<float>::denorm_min();
  const std::vector<Turns> turns = {{{1e30f, 1e-30f}, 1},
                                    {{1e30f, 1e30f, -1e-30f, 1e-30f}, 1},
                                    {{0x1p127f, least, 0x1p22f}, 1},
                                    {{1e30f, 1e30f}, std::numeric_limits<float>::infinity()},
                                    {{-1e-30f, 1e-30f}, 0},
                                    {{2, kNaN}, kNaN},
                                    {{1e-30f, INFINITY}, INFINITY},
                                    {{0, INFINITY}, kNaN}};
  for (const Device d : places())
    for (const auto& [of, product] : turns)
      for (const int64_t repeats : {1, 16, 1000}) {
        const int64_t n = 4 * repeats * int64_t(of.size());
        std::vector<float> row;
        for (int64_t i = 0; i < n; ++i) row.push_back(of[size_t(i) % of.size()]);
        const Tensor x = floats(d, {n}, row);
        const TensorView columns = x.view().reshape({n, 1}).broadcast_to({n, 3});
        Tensor side_by_side(DType::float32, {n, 8}, d);
        copy(side_by_side, x.view().reshape({n, 1}).broadcast_to({n, 8}));
        for (const auto& found : {values(prod(x)), values(prod(columns, {.axis = Dims{0}})),
                                  values(prod(side_by_side, {.axis = Dims{0}}))})
          for (const float one : found) {
            if (std::isnan(product)) {
              EXPECT_TRUE(std::isnan(one)) << d << ' ' << n;
            } else if (product == 1) {
              EXPECT_NEAR(one, 1, 1e-7 * double(n)) << d << ' ' << n;
            } else {
              EXPECT_EQ(one, product) << d << ' ' << n;
            }
          }
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
      ErrorKind::axis, [&] { sum(x, {.axis = Dims{2}}); }, "sum: axis must be in [-2, 2), got 2");
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
  EXPECT_EQ(values<int64_t>(argmin(huge.select(1, 2))), (std::vector<int64_t>{0}));
  EXPECT_EQ(values<float>(prod(huge.select(1, 0))), (std::vector<float>{1}));
  EXPECT_EQ(values<int64_t>(count_nonzero(huge))[0], 3ll << 50);
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

// Checks what var gives on every device and by every variant that takes the array.
void expect_variance(const std::vector<float>& x, double expected, double tolerance) {
  const auto n = int64_t(x.size());
  std::vector<float> apart;  // the same numbers as columns
  for (const float v : x) apart.insert(apart.end(), {v, v, v, v});
  for (const Device d : places()) {
    const Tensor row = floats(d, {n}, x), column = floats(d, {n, 4}, apart);
    for (const std::string_view variant : {"", "naive", "row", "column", "cpu"}) {
      if ((variant == "cpu") != is_cpu(d) && !variant.empty()) continue;
      for (const TensorView& t : {row.view(), column.view()}) {
        const VarOptions options{.axis = Dims{0}, .variant = variant};
        if (variant == (t.rank() == 1 ? "column" : "row")) continue;
        const float found = values<float>(var(t, options))[0];
        if (std::isinf(expected)) {
          EXPECT_EQ(found, expected) << d << " " << variant;
        } else {
          EXPECT_NEAR(found, expected, tolerance * expected) << d << " " << variant;
        }
        if (variant == "row") continue;  // this build has not every row of std
        EXPECT_FLOAT_EQ(values<float>(std(t, options))[0], std::sqrt(found));
      }
    }
  }
}

TEST(Reduce, VarianceOfLargeNumbersIsExact) {
  expect_variance({1e19f, -1e19f}, 1e38, 1e-6);
  expect_variance({3e38f, -3e38f}, std::numeric_limits<double>::infinity(), 0);
  expect_variance(std::vector<float>(100, 3e38f), 0, 0);
  std::vector<float> far(4096), near(4096);
  for (size_t i = 0; i < far.size(); ++i) {
    far[i] = 1e9f + float(i % 2) * 64;
    near[i] = 1e7f + float(i % 2);
  }
  expect_variance(far, 1024, 5e-6);
  expect_variance(near, 0.25, 5e-6);
}

TEST(Reduce, OneChainOfAdditionsKeepsItsDigits) {
  std::vector<float> x(100000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.1f + float(i % 3);
  double expected = 0;
  for (const float v : x) expected += double(v);
  for (const Device d : places())
    for (const std::string_view variant : {"", "naive"}) {
      if (is_cpu(d) && !variant.empty()) continue;
      const float found = values<float>(sum(floats(d, {100000}, x), {.variant = variant}))[0];
      EXPECT_NEAR(found, expected, (variant.empty() ? 2e-6 : 1e-7) * expected)
          << d << " " << variant;
    }
}

TEST(Reduce, ProductsCountsAndTheSmallest) {
  for (const Device d : places()) {
    const Tensor x = floats(d, {2, 3}, {1, -2, 3, 0, kNaN, 5});
    const auto product = values<float>(prod(x, {.axis = Dims{1}}));
    EXPECT_TRUE(product[0] == -6 && std::isnan(product[1]));
    EXPECT_EQ(values<int64_t>(argmin(x, {.axis = 1})), (std::vector<int64_t>{1, 1}));
    EXPECT_EQ(values<int64_t>(count_nonzero(x, {.axis = Dims{1}})), (std::vector<int64_t>{3, 2}));
    const Tensor none(DType::float32, {2, 0}, d);
    EXPECT_EQ(values<float>(prod(none, {.axis = Dims{1}})), (std::vector<float>{1, 1}));
    EXPECT_EQ(values<int64_t>(count_nonzero(none))[0], 0);
    expect_error(
        ErrorKind::value, [&] { argmin(none); },
        "argmin: x: axis 1 of shape [2, 0] must have at least one element: of none there is no "
        "argmin");
  }
}

TEST(Reduce, TheResultIsOfTheDtypeThatIsAskedFor) {
  for (const Device d : places()) {
    const Tensor x = on<int32_t>(d, DType::int32, {3}, {70000, 50000, 300});
    EXPECT_EQ(values<float>(prod(x, {.dtype = DType::float32}))[0], 1.05e12f);
    EXPECT_EQ(values<int64_t>(prod(x))[0], 1050000000000);
    EXPECT_EQ(values<int32_t>(sum(x, {.dtype = DType::int32}))[0], 120300);
    EXPECT_EQ(values<int8_t>(sum(x, {.dtype = DType::int8}))[0], int8_t(120300 & 255));
    const Tensor truths = on<uint8_t>(d, DType::bool_, {3}, {1, 1, 1});
    EXPECT_EQ(values<float>(sum(truths, {.dtype = DType::float32}))[0], 3);
    EXPECT_EQ(values<int64_t>(prod(truths))[0], 1);
    expect_error(
        ErrorKind::type, [&] { sum(floats(d, {1}, {1}), {.dtype = DType::int32}); },
        "sum: dtype must be float32, float16 or bfloat16 for x of float32, got int32; convert the "
        "result with astype");
  }
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

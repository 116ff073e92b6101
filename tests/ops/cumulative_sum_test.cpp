// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/cumulative_sum/cumulative_sum.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/cumulative_sum/plan.h"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;
using test::places;
using test::values;

TEST(CumulativeSum, ReadsAViewThatRunsBackwards) {
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const TensorView backwards(x.data() + 5, DType::float32, {2, 3}, {-3, -1}, Device::cpu());
  EXPECT_EQ(values<float>(cumulative_sum(backwards, {.axis = 1})),
            (std::vector<float>{6, 11, 15, 3, 5, 6}));
}

TEST(CumulativeSum, IntegersAddUpBeyondTheirOwnType) {
  const std::vector<int32_t> large(3000, 2147483647);
  for (const Device d : places()) {
    Tensor x(DType::int32, {3000}, d);
    x.copy_from_host(large.data(), x.nbytes());
    EXPECT_EQ(values<int64_t>(cumulative_sum(x)).back(), 3000ll * 2147483647) << d;
  }
}

// Segments of a long row are summed by blocks that finish in another order each time.
TEST(CumulativeSum, RepeatsToTheBitAndAddsUpEverything) {
  std::vector<float> numbers(70000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = float(i % 7) - 2.9f;
  Tensor x(DType::float32, {70000}, places().back());
  x.copy_from_host(numbers.data(), x.nbytes());
  const auto first = values<float>(cumulative_sum(x));
  double sum = 0;
  for (const float v : numbers) sum += double(v);
  EXPECT_NEAR(first.back(), sum, 1e-5 * std::abs(sum));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(values<float>(cumulative_sum(x)), first);
}

TEST(CumulativeSum, OneChainOfAdditionsKeepsItsDigits) {
  std::vector<float> numbers(100000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0.1f + float(i % 3);
  for (const Device d : places())
    for (const std::string_view variant : {"", "naive"}) {
      if (d == Device::cpu() && !variant.empty()) continue;
      Tensor x(DType::float32, {100000}, d);
      x.copy_from_host(numbers.data(), x.nbytes());
      const auto sums = values<float>(cumulative_sum(x, {.variant = variant}));
      double sum = 0;
      for (size_t i = 0; i < sums.size(); ++i) {
        sum += double(numbers[i]);
        ASSERT_NEAR(sums[i], sum, (variant.empty() ? 3e-6 : 1e-7) * sum) << d << " " << variant;
      }
    }
}

TEST(CumulativeSum, A0MayComeFirst) {
  for (const Device d : places()) {
    Tensor none(DType::int32, {0}, d);
    EXPECT_EQ(values<int64_t>(cumulative_sum(none, {.include_initial = true})),
              (std::vector<int64_t>{0}));
    Tensor x(DType::int32, {2, 2}, d);
    const std::vector<int32_t> numbers = {1, 2, 300, 4};
    x.copy_from_host(numbers.data(), x.nbytes());
    EXPECT_EQ(values<uint8_t>(
                  cumulative_sum(x, {.axis = 0, .dtype = DType::uint8, .include_initial = true})),
              (std::vector<uint8_t>{0, 0, 1, 2, 45, 6}));
    expect_error(
        ErrorKind::type, [&] { cumulative_sum(x, {.axis = 0, .dtype = DType::bool_}); },
        "cumulative_sum: dtype must be float32, float16 or bfloat16, or int8, int16, int32, int64 "
        "or uint8 for x of int32, got bool; convert the result with astype");
  }
}

// One that started later would wait for all others and double the time.
TEST(CumulativeSum, BlocksThatShareRowsAllRunAtOnce) {
  namespace s = kernel::cumulative_sum;
  for (const int64_t rows : {1, 3, 16, 100})
    for (const int64_t cols : {20000, 262144, 134217728})
      for (const int num_sms : {1, 20, 132}) {
        const s::Given floats{.is_float = true, .element_bytes = 4};
        const op::Gpu gpu{.num_sms = num_sms};
        auto p = s::contiguous_params(nullptr, nullptr, rows, cols);
        const s::Start start = s::row(p, floats, gpu).start;
        s::cut_rows(p, floats, gpu);
        if (p.segments > 1) {
          EXPECT_LE(start.blocks, start.min_blocks * num_sms) << rows << " " << cols;
        }
      }
}

// Every variant has read an element before it writes there, also the segments of a long row.
TEST(CumulativeSum, MayWriteWhatItReads) {
  std::mt19937 random(5);
  for (const Dims& shape : {Dims{3, 70000}, Dims{70000, 3}, Dims{40, 33, 5}})
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::int64})
      for (const auto& v : find_operator("cumulative_sum").description().variants) {
        const Device device = v.device == DeviceType::cpu ? Device::cpu() : places().back();
        if (device == Device::cpu() && v.device != DeviceType::cpu) continue;
        const int64_t axis = shape.rank() == 3 ? 1 : shape[0] > shape[1] ? 0 : 1;
        const Tensor x = astype(test::normal_tensor(shape, random, 0, 9), {dtype}).to(device);
        const CumulativeSumOptions options{.axis = axis, .variant = v.name};
        std::vector<float> expected;
        try {
          expected = values(astype(cumulative_sum(x, options), {DType::float32}));
        } catch (const Error& e) {  // not every Config is compiled for the emulator
          EXPECT_EQ(e.kind(), ErrorKind::unsupported) << e.what();
          continue;
        }
        cumulative_sum(x, x, options);
        EXPECT_EQ(values(astype(x, {DType::float32})), expected)
            << v.name << ' ' << dtype << ' ' << shape;
      }
}

// The products from the left in float32, of rows of turns that exceed it if two like each other
// meet.
TEST(CumulativeProd, MultipliesFloatsFromTheLeft) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<std::vector<float>> turns = {
      {0, 1e30f, 1e30f},        {1e-30f, 1e30f, 1e30f},  {1e30f, 1e-30f, 1e-30f, 1e30f},
      {1e30f, 1e30f, 1e-30f},   {1, -2, 0.75f, -0.625f}, {1e30f, -1e30f, 1, 1, 1, 0, 1},
      {-kInfinity, 2, NAN, 1.f}};
  const auto same = [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  for (const int64_t n : {3, 31, 5000})
    for (const auto& turn : turns) {
      std::vector<float> numbers, expected;
      float product = 1;
      for (int64_t i = 0; i < n; ++i) {
        numbers.push_back(turn[size_t(i) % turn.size()]);
        expected.push_back(product *= numbers.back());
      }
      for (const auto& v : find_operator("cumulative_prod").description().variants) {
        const Device device = v.device == DeviceType::cpu ? Device::cpu() : places().back();
        if (v.name == "reference" || (device == Device::cpu() && v.device != DeviceType::cpu))
          continue;  // in double, and without subnormal numbers
        Tensor x(DType::float32, {n}, device), out(DType::float32, {n, 3}, device);
        x.copy_from_host(numbers.data(), x.nbytes());
        const auto along = values(cumulative_prod(x, {.variant = v.name}));
        const TensorView columns = x.view().reshape({n, 1}).broadcast_to({n, 3});
        cumulative_prod(out, columns, {.axis = 0, .variant = v.name});
        const auto across = values(out);
        for (size_t i = 0; i < size_t(n); ++i) {
          ASSERT_TRUE(same(along[i], expected[i]))
              << v.name << ' ' << along[i] << " for " << expected[i] << " at " << i << " of " << n;
          ASSERT_TRUE(same(across[3 * i + 1], expected[i])) << v.name << " at " << i << " of " << n;
        }
      }
    }
}

TEST(CumulativeProd, IntegersWrapAndSegmentsOfARowMeet) {
  std::vector<int32_t> numbers(70000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = int32_t(i % 9) * 2 - 7;
  std::vector<int64_t> expected;
  uint64_t product = 1;
  for (const int32_t x : numbers) expected.push_back(int64_t(product *= uint64_t(int64_t(x))));
  for (const Device d : places()) {
    Tensor x(DType::int32, {70000}, d);
    x.copy_from_host(numbers.data(), x.nbytes());
    EXPECT_EQ(values<int64_t>(cumulative_prod(x)), expected) << d;
  }
}

TEST(CumulativeProd, OfBoolsIs1UpToTheFirstFalse) {
  const std::vector<uint8_t> truths = {1, 2, 255, 0, 1};
  for (const Device d : places()) {
    Tensor x(DType::bool_, {5}, d);
    x.copy_from_host(truths.data(), x.nbytes());
    EXPECT_EQ(values<int64_t>(cumulative_prod(x)), (std::vector<int64_t>{1, 1, 1, 0, 0})) << d;
    EXPECT_EQ(values(cumulative_prod(x, {.dtype = DType::float32, .include_initial = true})),
              (std::vector<float>{1, 1, 1, 1, 0, 0}))
        << d;
  }
}

// No part of a row of floats is multiplied by itself.
TEST(CumulativeProd, ARowOfFloatsIsNotCut) {
  namespace s = kernel::cumulative_sum;
  const op::Gpu gpu{.num_sms = 132};
  s::Given given{.is_float = true, .element_bytes = 4, .operation = s::Operation::prod};
  const auto segments = [&] {
    auto p = s::contiguous_params(nullptr, nullptr, 1, 1 << 20);
    s::cut_rows(p, given, gpu);
    return p.segments;
  };
  EXPECT_EQ(segments(), 1);
  given.is_float = false;
  EXPECT_GT(segments(), 1);
  given.operation = s::Operation::float_prod;
  EXPECT_EQ(segments(), 1);
}

TEST(CumulativeSum, WantsAnAxisThatIsThere) {
  const Tensor x(DType::float32, {2, 3});
  expect_error(
      ErrorKind::axis, [&] { cumulative_sum(x, {.axis = -3}); },
      "cumulative_sum: axis must be in [-2, 2), got -3");
  expect_error(
      ErrorKind::value, [&] { cumulative_sum(x); }, "cumulative_sum: give axis: x has 2 axes");
}

}  // namespace
}  // namespace tensorcraft

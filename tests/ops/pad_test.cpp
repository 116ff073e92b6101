// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/pad/pad.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/pad/plan.h"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace tensorcraft {
namespace {

using test::counting_tensor;
using test::expect_error;
using test::values;

TEST(Pad, PutsAMarginAroundEachAxis) {
  const Tensor x = counting_tensor({2, 2});
  const Margins by{{0, 1}, {1, 2}};
  for (const char* variant : {"cpu", "reference"}) {
    const Tensor y = pad(x, {.pad_width = by, .value = 9, .variant = variant});
    EXPECT_EQ(y.shape(), (Dims{3, 5}));
    EXPECT_EQ(values(y), (std::vector<float>{9, 0, 1, 9, 9, 9, 2, 3, 9, 9, 9, 9, 9, 9, 9}));
  }
}

TEST(Pad, OneEntryIsTheWidthOfEveryAxis) {
  const Tensor y = pad(counting_tensor({1, 1}), {.pad_width = {{1}, {0}}, .value = -1});
  EXPECT_EQ(y.shape(), (Dims{2, 2}));
  EXPECT_EQ(values(y), (std::vector<float>{-1, -1, -1, 0}));
  EXPECT_EQ(values(pad(counting_tensor({}), {.pad_width = {{4}, {4}}, .value = 1})),
            std::vector<float>{0});
}

TEST(Pad, TakesOneWidthAPairOrAPairForEachAxis) {
  const op::Operator& pad = find_operator("pad");
  const TensorView x(nullptr, DType::float32, {2, 3}, Device::cpu());
  const auto shape = [&](const op::Value& width) {
    return pad.infer({std::span(&x, 1), std::span(&width, 1)})[0].shape;
  };
  EXPECT_EQ(shape(int64_t(3)), (Dims{8, 9}));
  EXPECT_EQ(shape(Dims{3}), (Dims{8, 9}));
  EXPECT_EQ(shape(Dims{1, 2}), (Dims{5, 6}));
  EXPECT_EQ(shape(std::vector<Dims>{{1, 2}, {4, 5}}), (Dims{5, 12}));
  expect_error(
      ErrorKind::type, [&] { shape(Dims{1, 2, 3}); },
      "pad: pad_width must be an int, a pair of ints or a pair for each axis, got a list of 3 "
      "ints");
  expect_error(
      ErrorKind::type, [&] { shape(std::vector<Dims>{{1, 2}, {4, 5, 6}}); },
      "pad: pad_width must be an int, a pair (before, after) or such a pair for each axis, got (4, "
      "5, 6) among them");
}

TEST(Pad, OfNothingIsAllMargin) {
  const Tensor y = pad(counting_tensor({0, 2}), {.pad_width = {{1, 0}, {1, 1}}, .value = 3});
  EXPECT_EQ(values(y), (std::vector<float>{3, 3, 3, 3, 3, 3}));
  EXPECT_EQ(pad(counting_tensor({0, 2}), {.pad_width = {{0}, {0}}}).size(), 0);
}

TEST(Pad, ConvertsTheValueAsFillDoes) {
  Tensor x(DType::int8, {1});
  *x.data_as<int8_t>() = 5;
  const auto padded = [&](double value) {
    return int(pad(x, {.pad_width = {{1}, {0}}, .value = value}).data_as<int8_t>()[0]);
  };
  EXPECT_EQ(padded(-2.5), -2);
  EXPECT_EQ(padded(300), 127);
  EXPECT_EQ(padded(NAN), 0);
}

TEST(Pad, RefusesWidthsThatDoNotFit) {
  const Tensor x = counting_tensor({2, 3});
  expect_error(
      ErrorKind::type, [&] { pad(x, {.pad_width = {{1, 1, 1}, {1, 1, 1}}}); },
      "pad: pad_width must be an int, a pair of ints or a pair for each of the 2 axes of x, got 3 "
      "widths for one side");
  expect_error(
      ErrorKind::type, [&] { pad(x, {.value = 1}); },
      "pad: pad_width must be an int, a pair of ints or a pair for each of the 2 axes of x, got 0 "
      "widths for one side");
  expect_error(
      ErrorKind::value, [&] { pad(x, {.pad_width = {{0, 1}, {0, -1}}}); },
      "pad: pad_width must be at least 0, got (1, -1) for axis 1; a slice makes an axis shorter");
  const int64_t most = INT64_MAX;
  for (const auto& [before, after] : {std::pair{most, int64_t(0)}, {int64_t(1), most - 3}})
    expect_error(
        ErrorKind::value, [&, by = Margins{{0, before}, {0, after}}] { pad(x, {.pad_width = by}); },
        join("pad: pad_width (", before, ", ", after, ") makes axis 1 longer than 64 bits count"));
  Tensor out = counting_tensor({2, 3});
  EXPECT_THROW(pad(out, x, {.pad_width = {{1}, {0}}}), Error);
  EXPECT_EQ(values(out), values(x));
}

// On the kernels: units that end in the middle of a row, of the margin and of memory.
TEST(Pad, OfEveryWidthIsTheReferenceOnTheKernels) {
  if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the emulator";
  for (const int64_t cols : {1, 15, 16, 17, 40})
    for (int64_t before = 0; before < 18; before += 3)
      for (const int64_t after : {0, 1, 16}) {
        Tensor x(DType::int8, {3, cols}, Device::simt());
        for (int64_t i = 0; i < x.size(); ++i) x.data_as<int8_t>()[i] = int8_t(i % 100);
        const TensorView host(x.data(), DType::int8, x.shape());
        const Margins by{{1, before}, {0, after}};
        const Tensor wanted = pad(host, {.pad_width = by, .value = -1, .variant = "reference"});
        const auto row = size_t(before + cols + after);
        for (const char* variant : {"naive", "vectorized"}) {
          if (row < 16 && variant[0] == 'v') continue;
          const Tensor y = pad(x, {.pad_width = by, .value = -1, .variant = variant});
          ASSERT_EQ(std::memcmp(y.data(), wanted.data(), wanted.nbytes()), 0)
              << variant << ' ' << cols << ' ' << before << ' ' << after;
        }
      }
}

TEST(PadPlan, MergesAnAxisThatXFillsWithTheOneInFront) {
  const int64_t shape[] = {2, 3, 4, 5}, before[] = {0, 0, 1, 0}, after[] = {0, 0, 2, 0};
  const auto p = kernel::pad::contiguous_params(nullptr, nullptr, 0, 4, before, after, shape);
  ASSERT_EQ(p.axes.count, 2);
  EXPECT_EQ(p.axes.size[0], 6);
  EXPECT_EQ(p.axes.size[1], 35);
  EXPECT_EQ(p.axes.before[1], 5);
  EXPECT_EQ(p.axes.inside[1], 20);
  EXPECT_EQ(p.count, 210);
}

}  // namespace
}  // namespace tensorcraft

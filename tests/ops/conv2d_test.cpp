// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/conv2d/conv2d.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/conv2d/plan.h"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tensorcraft {
namespace {

Tensor images(const Dims& shape, std::vector<float> values) {
  Tensor t(DType::float32, shape);
  std::copy(values.begin(), values.end(), t.data_as<float>());
  return t;
}

std::vector<float> values_of(const Tensor& t) {
  return {t.data_as<float>(), t.data_as<float>() + t.size()};
}

TEST(Conv2d, AWindowMovesOverTheImage) {
  const Tensor x = images({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}), w = images({1, 1, 1, 2}, {1, -1});
  EXPECT_EQ(values_of(conv2d(x, w)), (std::vector<float>{-1, -1, -1, -1}));
  EXPECT_EQ(values_of(conv2d(x, w, {.padding = ImagePadding(0, 1)})),
            (std::vector<float>{-1, -1, -1, 3, -4, -1, -1, 6}));
}

TEST(Conv2d, ActivationsAreOfTheFinishedSum) {
  const Tensor x = images({1, 1, 1, 5}, {-4, -1, 1, 2, 9}), w = images({1, 1, 1, 1}, {1});
  const auto with = [&](ConvActivation a) { return values_of(conv2d(x, w, {.activation = a})); };
  EXPECT_EQ(with(ConvActivation::relu), (std::vector<float>{0, 0, 1, 2, 9}));
  EXPECT_EQ(with(ConvActivation::relu6), (std::vector<float>{0, 0, 1, 2, 6}));
  EXPECT_NEAR(with(ConvActivation::hard_swish)[1], -1.0f / 3, 1e-6f);
  EXPECT_EQ(with(ConvActivation::hard_swish)[0], 0);
  EXPECT_EQ(with(ConvActivation::hard_swish)[4], 9);
  const Tensor nan = images({1, 1, 1, 1}, {std::numeric_limits<float>::quiet_NaN()});
  EXPECT_TRUE(std::isnan(values_of(conv2d(nan, w, {.activation = ConvActivation::relu6}))[0]));
}

TEST(Conv2d, SameLeavesTheOddRowBelow) {
  // 2 of stride 2 and 3 taps need one more: below and to the right, as TensorFlow has it.
  const Tensor x = images({1, 1, 2, 2}, {1, 2, 3, 4});
  const Tensor w = images({1, 1, 3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 1});
  const Tensor y = conv2d(x, w, {.stride = {2}, .padding = ImagePadding::same_size()});
  EXPECT_EQ(y.shape(), (Dims{1, 1, 1, 1}));
  EXPECT_EQ(values_of(y), (std::vector<float>{10}));
  const Tensor row = images({1, 1, 1, 4}, {1, 2, 3, 4}), three = images({1, 1, 1, 3}, {1, 1, 1});
  EXPECT_EQ(values_of(conv2d(row, three, {.stride = {2}, .padding = ImagePadding::same_size()})),
            (std::vector<float>{6, 7}));
}

TEST(Conv2d, WhatCannotBeIsRefusedByName) {
  const Tensor x(DType::float32, {2, 4, 5, 6});
  const auto w = [](const Dims& shape) { return Tensor(DType::float32, shape); };
  test::expect_error_with(ErrorKind::value,
                          "covers 7 rows (7 taps, dilation 1), but the padded image has 5",
                          [&] { conv2d(x, w({1, 4, 7, 1})); });
  test::expect_error_with(ErrorKind::value, "covers 7 columns (3 taps, dilation 3)",
                          [&] { conv2d(x, w({1, 4, 1, 3}), {.dilation = {1, 3}}); });
  test::expect_error_with(ErrorKind::value, "groups must divide the 4 channels of x, got 3",
                          [&] { conv2d(x, w({3, 4, 1, 1}), {.groups = 3}); });
  test::expect_error_with(ErrorKind::value, "groups must divide the 3 filters of w, got 2",
                          [&] { conv2d(x, w({3, 2, 1, 1}), {.groups = 2}); });
  test::expect_error_with(ErrorKind::value, "expected filters of 2 channels",
                          [&] { conv2d(x, w({2, 4, 1, 1}), {.groups = 2}); });
  test::expect_error_with(ErrorKind::value, "stride must be from 1",
                          [&] { conv2d(x, w({1, 4, 1, 1}), {.stride = {0}}); });
  test::expect_error_with(ErrorKind::value, "padding must be from 0",
                          [&] { conv2d(x, w({1, 4, 1, 1}), {.padding = -1}); });
  test::expect_error_with(ErrorKind::value,
                          "x: expected 4 dimensions, batch, channels, rows, columns, got",
                          [&] { conv2d(Tensor(DType::float32, {4, 5, 6}), w({1, 4, 1, 1})); });
  test::expect_error_with(
      ErrorKind::value,
      "w: expected 4 dimensions, filters, channels of a group, rows, columns, got",
      [&] { conv2d(x, w({1, 4, 1})); });
  test::expect_error_with(
      ErrorKind::value,
      "w: expected 4 dimensions, filters, rows, columns, channels of a group, got",
      [&] { conv2d(x, w({1, 4, 1}), {.layout = ImageLayout::nhwc}); });
  test::expect_error_with(ErrorKind::value, "it must be left out, got",
                          [&] { depthwise_conv2d(x, w({4, 1, 1, 1}), {.groups = 4}); });
  test::expect_error_with(ErrorKind::type, "Dtype",
                          [&] { conv2d(x, Tensor(DType::float16, {1, 4, 1, 1})); });
}

// 32 images of 56 x 56 and 128 channels, 128 filters of 3 x 3, stride 2.
kernel::conv2d::Params layer() {
  alignas(16) static std::byte memory[16];
  return {.x = memory,
          .w = memory,
          .out = memory,
          .batch = 32,
          .groups = 1,
          .channels = 128,
          .filters = 128,
          .rows = {56, 28, 3, 2, 1, 1},
          .columns = {56, 28, 3, 2, 1, 1},
          .x_at = {56 * 56 * 128, 56 * 128, 128, 1},
          .out_at = {28 * 28 * 128, 28 * 128, 128, 1},
          .w_at = {9 * 128, 3 * 128, 128, 1}};
}
const op::Gpu kHopper{.architecture = 90, .num_sms = 132, .shared_bytes_per_block = 227 << 10};

TEST(Conv2d, TheCopyEngineSaysWhatItsMapsCannotHold) {
  using Params = kernel::conv2d::Params;
  const std::pair<const char*, std::function<void(Params&)>> cases[] = {
      {"needs one group", [](Params& p) { p.groups = 2; }},
      {"needs multiples of 8 channels and filters", [](Params& p) { p.channels = 12; }},
      {"needs multiples of 8 channels and filters", [](Params& p) { p.filters = 100; }},
      {"and strides forwards", [](Params& p) { p.x_at.row = -p.x_at.row; }},
      {"needs the taps and channels of a filter without gaps", [](Params& p) { p.w_at.row += 8; }},
      {"needs strides up to 8", [](Params& p) { p.rows.stride = 9; }},
      {"needs strides up to 8, and padding", [](Params& p) { p.columns.before = 129; }},
      {"needs strides up to 8, and padding", [](Params& p) { p.columns.dilation = 128; }},
      {"needs a result without gaps", [](Params& p) { p.out_at.row += 8; }},
      {"needs a result without gaps", [](Params& p) { p.out_at.channel = 784; }},
      {"and channels of it and of residual side by side",
       [](Params& p) {
         p.residual = p.out;
         p.residual_at = {28 * 28 * 128, 28, 1, 784};
       }},
      {"needs fewer than 2^31 - 256 places",
       [](Params& p) { p.batch = (int64_t(1) << 31) / (28 * 28) + 1; }},
  };
  const kernel::conv2d::Given given{2, ConvActivation::none};
  EXPECT_EQ(kernel::conv2d::wgmma_refusal(layer(), given, kHopper, false), "");
  for (const auto& [text, spoil] : cases) {
    Params p = layer();
    spoil(p);
    const std::string_view why = kernel::conv2d::wgmma_refusal(p, given, kHopper, false);
    EXPECT_NE(why.find(text), why.npos) << "expected \"" << text << "\" in: " << why;
  }
  const auto refusal = [](const kernel::conv2d::Given& g, const op::Gpu& gpu, bool tf32) {
    return kernel::conv2d::wgmma_refusal(layer(), g, gpu, tf32);
  };
  EXPECT_EQ(refusal({4, {}}, kHopper, false), "needs float16 or bfloat16");
  EXPECT_EQ(refusal(given, {.architecture = 80}, false), "needs sm_90");
  EXPECT_EQ(refusal(given, kHopper, true), "needs float32");
  EXPECT_EQ(refusal({4, {}}, kHopper, true),
            "float32 would be rounded to tf32, which allow_tf32 is not set for");
  EXPECT_EQ(refusal({4, {}, true}, kHopper, true), "");
}

// A network begins with this: 7 x 7 of 3 channels, strides of 2.
kernel::conv2d::Params stem() {
  alignas(16) static std::byte aligned[16];
  return {.x = aligned,
          .w = aligned,
          .bias = nullptr,
          .residual = nullptr,
          .out = aligned,
          .batch = 32,
          .groups = 1,
          .channels = 3,
          .filters = 64,
          .rows = {224, 112, 7, 2, 1, 3},
          .columns = {224, 112, 7, 2, 1, 3},
          .x_at = {224 * 224 * 3, 224 * 3, 3, 1},
          .out_at = {112 * 112 * 64, 112 * 64, 64, 1},
          .w_at = {147, 21, 3, 1}};
}

TEST(Conv2d, DirectOnWgmmaSaysWhatItDoesNotTake) {
  using Params = kernel::conv2d::Params;
  const std::pair<const char*, std::function<void(Params&)>> cases[] = {
      {"needs 1 to 4 channels in one group", [](Params& p) { p.groups = 2; }},
      {"needs taps side by side", [](Params& p) { p.rows.dilation = 2; }},
      {"needs a window of 3 x 3 or 7 x 7", [](Params& p) { p.rows.taps = 3; }},
      {"strides of 2", [](Params& p) { p.columns.stride = 1; }},
      {"padding up to 8", [](Params& p) { p.columns.before = 9; }},
      {"needs images that are not empty", [](Params& p) { p.columns.in = 0; }},
      {"needs lines of 3 channels without gaps", [](Params& p) { p.channels = 4; }},
      {"2 pixels at multiples of 4 bytes", [](Params& p) { p.columns.in = 223; }},
      {"2 pixels at multiples of 4 bytes", [](Params& p) { p.x_at.row += 3; }},
      {"2 pixels at multiples of 4 bytes",
       [](Params& p) { p.x = static_cast<const std::byte*>(p.x) + 2; }},
      {"needs filters of fewer than 2^30", [](Params& p) { p.w_at.channel = 1 << 29; }},
      {"needs results in units of 8 filters", [](Params& p) { p.filters = 60; }},
      {"and no residual", [](Params& p) { p.residual = p.out; }},
  };
  const kernel::conv2d::Given given{2, ConvActivation::none};
  const auto choice = kernel::conv2d::direct_wgmma(stem(), given, kHopper);
  EXPECT_EQ(choice.refusal, "");
  EXPECT_EQ(choice.start.blocks, 4 * 132);
  for (const auto& [text, spoil] : cases) {
    Params p = stem();
    spoil(p);
    const std::string_view why = kernel::conv2d::direct_wgmma(p, given, kHopper).refusal;
    EXPECT_NE(why.find(text), why.npos) << "expected \"" << text << "\" in: " << why;
  }
  const auto refusal = [](const kernel::conv2d::Given& g, const op::Gpu& gpu) {
    return kernel::conv2d::direct_wgmma(stem(), g, gpu).refusal;
  };
  EXPECT_EQ(refusal({4, {}}, kHopper), "needs float16 or bfloat16");
  EXPECT_EQ(refusal(given, {.architecture = 80}), "needs sm_90");
  EXPECT_EQ(refusal(given, {.architecture = 100}), "wgmma exists on sm_90 alone");
}

TEST(Conv2d, TilesFollowTheFiltersAndLeaveNoMultiprocessorIdle) {
  const auto tile = [](int64_t batch, int64_t side, int64_t filters) {
    kernel::conv2d::Params p = layer();
    p.batch = batch;
    p.rows = p.columns = {side, side, 3, 1, 1, 1};
    p.filters = filters;
    const auto best = kernel::conv2d::best_wgmma_tile(p, kHopper, 2).tile;
    return std::pair(best.m, best.n);
  };
  EXPECT_EQ(tile(32, 128, 512), std::pair(128, 256));
  EXPECT_EQ(tile(8, 64, 320), std::pair(128, 160));
  EXPECT_EQ(tile(1, 8, 64), std::pair(64, 64));
}

// Tensor cores take 4 channels of float32 in 16 bytes, where 16-bit elements need 8.
TEST(Conv2d, Float32IsTakenInUnitsOfItsOwn) {
  kernel::conv2d::Params p = layer();
  p.channels = 12;
  p.x_at = {56 * 56 * 12, 56 * 12, 12, 1};
  p.w_at = {9 * 12, 3 * 12, 12, 1};
  p.filters = 20;
  p.out_at = {28 * 28 * 20, 28 * 20, 20, 1};
  const kernel::conv2d::Given given{4, ConvActivation::none, true};
  EXPECT_EQ(kernel::conv2d::wgmma_refusal(p, given, kHopper, true), "");
  EXPECT_EQ(kernel::conv2d::implicit_gemm<true>(p, given, kHopper).refusal, "");
  p.channels = 10;
  EXPECT_EQ(kernel::conv2d::wgmma_refusal(p, given, kHopper, true),
            "needs multiples of 4 channels and filters");
  EXPECT_EQ(kernel::conv2d::implicit_gemm<true>(p, given, kHopper).refusal,
            "needs a multiple of 4 channels in a group");
  p.channels = 12;
  p.residual = static_cast<const std::byte*>(p.x) + 4;
  p.residual_at = p.out_at;
  EXPECT_NE(kernel::conv2d::wgmma_refusal(p, given, kHopper, true), "") << "8 bytes of residual";
}

// Images of 112 x 112 and 96 channels, each by itself, 3 x 3.
kernel::conv2d::Params depthwise_layer(int64_t batch) {
  kernel::conv2d::Params p = layer();
  p.batch = batch;
  p.groups = 96;
  p.channels = p.filters = 1;
  p.rows = p.columns = {112, 112, 3, 1, 1, 1};
  p.x_at = p.out_at = {112 * 112 * 96, 112 * 96, 96, 1};
  p.w_at = {9, 3, 1, 1};
  return p;
}

TEST(Conv2d, StripsCoverTheResultAndFillTheMultiprocessors) {
  const kernel::conv2d::Given given{2, ConvActivation::none};
  for (const int64_t batch : {1, 3, 32, 700}) {
    kernel::conv2d::Params p = depthwise_layer(batch);
    const auto strips = kernel::conv2d::strips_of(p, given, kHopper);
    EXPECT_EQ(strips.pieces, 28);
    EXPECT_GE(strips.segments * strips.rows, 112);
    EXPECT_LT((strips.segments - 1) * strips.rows, 112);
    EXPECT_EQ(strips.blocks, 3 * div_ceil(batch * 28 * strips.segments, int64_t(8)));
    kernel::conv2d::cut_strips(p, given, kHopper);
    EXPECT_EQ(p.strips, batch * 28 * strips.segments);
    EXPECT_EQ(p.strip_rows, strips.rows);
  }
  // One image is cut until there is a block for nearly every multiprocessor; many need no cut.
  const auto rows = [&](int64_t batch) {
    return kernel::conv2d::strips_of(depthwise_layer(batch), given, kHopper).rows;
  };
  EXPECT_LT(rows(1), 8);
  EXPECT_GT(rows(700), 20);
}

TEST(Conv2d, SlidingSaysWhatItDoesNotTake) {
  using Params = kernel::conv2d::Params;
  const kernel::conv2d::Given given{2, ConvActivation::none};
  const std::pair<const char*, std::function<void(Params&)>> cases[] = {
      {"needs one channel", [](Params& p) { p.filters = 2; }},
      {"needs a square window", [](Params& p) { p.columns.taps = 5; }},
      {"needs a square window", [](Params& p) { p.rows.taps = p.columns.taps = 7; }},
      {"needs a square window", [](Params& p) { p.rows.stride = p.columns.stride = 3; }},
      {"needs a square window", [](Params& p) { p.rows.dilation = 2; }},
      {"needs pairs of channels", [](Params& p) { p.groups = 95; }},
      {"needs pairs of channels", [](Params& p) { p.x_at.column = 97; }},
      {"needs pairs of channels", [](Params& p) { p.out_at.channel = 2; }},
      {"needs fewer than 2^30 strips", [](Params& p) { p.batch = int64_t(1) << 30; }},
      {"and filters of fewer than 2^30", [](Params& p) { p.x_at.row = int64_t(1) << 24; }},
      {"and filters of fewer than 2^30", [](Params& p) { p.w_at.row = int64_t(1) << 31; }},
  };
  EXPECT_EQ(kernel::conv2d::sliding(depthwise_layer(2), given, kHopper).refusal, "");
  for (const auto& [text, spoil] : cases) {
    Params p = depthwise_layer(2);
    spoil(p);
    const std::string_view why = kernel::conv2d::sliding(p, given, kHopper).refusal;
    EXPECT_NE(why.find(text), why.npos) << "expected \"" << text << "\" in: " << why;
  }
}

Tensor on_simt(const Tensor& x) { return x.to(Device::simt()); }

// The emulator rounds as the GPU does: what a variant of tf32 gives is off, but not by more.
TEST(Conv2d, RoundsFloat32OnlyIfItMay) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const auto filled = [&](const Dims& shape) {
    Tensor t(DType::float32, shape);
    for (int64_t i = 0; i < t.size(); ++i) t.data_as<float>()[i] = normal(random);
    return t;
  };
  const Tensor x = filled({2, 6, 5, 36}), w = filled({8, 3, 3, 36});
  Conv2dOptions options{.padding = 1, .layout = ImageLayout::nhwc};
  options.variant = "reference";
  const std::vector<float> expected = values_of(conv2d(x, w, options));
  const auto error_of = [&](std::string_view variant) {
    options.variant = variant;
    const std::vector<float> got =
        values_of(conv2d(on_simt(x), on_simt(w), options).to(Device::cpu()));
    double errors = 0, norm = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      errors += std::pow(double(got[i]) - expected[i], 2);
      norm += std::pow(double(expected[i]), 2);
    }
    return std::sqrt(errors / norm);
  };
  for (const std::string_view variant : {"implicit_gemm_tf32", "implicit_wgmma_tf32"}) {
    options.allow_tf32 = false;
    test::expect_error_with(ErrorKind::unsupported, "which allow_tf32 is not set for",
                            [&] { error_of(variant); });
    options.allow_tf32 = true;
    EXPECT_LT(error_of(variant), 1e-3) << variant;
    EXPECT_GT(error_of(variant), 1e-5) << variant << " did not round";
  }
  EXPECT_LT(error_of("tiled"), 1e-6);
}

// A filter of 1 x 1 copies a channel of one pixel. Where the copy engine rounds, the largest
// numbers become infinite.
TEST(Conv2d, InfinitiesNanAndTheLargestNumbersSurviveTf32) {
  constexpr float kMost = std::numeric_limits<float>::max(), kInfinity = INFINITY;
  const std::vector<float> values = {kMost, -kMost, kInfinity, -kInfinity, NAN};
  Tensor x(DType::float32, {1, 5, 4, 32}), w(DType::float32, {64, 1, 1, 32});
  for (int64_t i = 0; i < x.size(); ++i)
    x.data_as<float>()[i] = i % 128 ? 0 : values[size_t(i / 128)];
  for (int64_t i = 0; i < w.size(); ++i) w.data_as<float>()[i] = 1;
  Conv2dOptions options{.layout = ImageLayout::nhwc, .allow_tf32 = true};
  for (const std::string_view variant : {"implicit_gemm_tf32", "implicit_wgmma_tf32"}) {
    options.variant = variant;
    const std::vector<float> got =
        values_of(conv2d(on_simt(x), on_simt(w), options).to(Device::cpu()));
    for (size_t i = 0; i < values.size(); ++i) {
      const float y = got[i * 4 * 64];
      if (std::isnan(values[i])) {
        EXPECT_TRUE(std::isnan(y)) << variant;
      } else if (std::isinf(values[i])) {
        EXPECT_EQ(y, values[i]) << variant;
      } else if (variant == "implicit_gemm_tf32") {
        EXPECT_NEAR(y, values[i], double(kMost) * 0x1p-10) << variant;
      }
    }
  }
}

}  // namespace
}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/depthwise_separable_conv2d/depthwise_separable_conv2d.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/depthwise_separable_conv2d/plan.h"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

namespace tensorcraft {
namespace {

namespace separable = kernel::depthwise_separable_conv2d;

Tensor image_of(const Dims& shape, std::vector<float> values) {
  Tensor t(DType::float32, shape);
  std::copy(values.begin(), values.end(), t.data_as<float>());
  return t;
}
std::vector<float> numbers_of(const Tensor& t) {
  return {t.data_as<float>(), t.data_as<float>() + t.size()};
}

TEST(DepthwiseSeparableConv2d, FiltersEachChannelAndThenMixesThem) {
  const Tensor x = image_of({1, 2, 1, 3}, {1, 2, 4, 10, 20, 40});
  const Tensor depthwise = image_of({2, 1, 1, 2}, {1, 1, 1, -1});  // sums and differences
  const Tensor pointwise = image_of({2, 2, 1, 1}, {1, 0, 1, 1});
  EXPECT_EQ(numbers_of(depthwise_separable_conv2d(x, depthwise, pointwise)),
            (std::vector<float>{3, 6, -7, -14}));
  const Tensor between = image_of({2}, {0, 5}), after = image_of({2}, {100, 200});
  EXPECT_EQ(numbers_of(depthwise_separable_conv2d(x, depthwise, pointwise,
                                                  {.depthwise_bias = between,
                                                   .bias = after,
                                                   .depthwise_activation = ConvActivation::relu})),
            (std::vector<float>{103, 106, 203, 206}));
}

// Values whose products a 16-bit dtype does not hold.
Tensor sawtooth(const Dims& shape, DType dtype, float step) {
  Tensor t(DType::float32, shape);
  for (int64_t i = 0; i < t.size(); ++i) t.data_as<float>()[i] = step * float(i % 37 - 18);
  return astype(t, {.dtype = dtype});
}

TEST(DepthwiseSeparableConv2d, EqualsTwoCalls) {
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const Tensor x = sawtooth({2, 9, 10, 16}, dtype, 0.37f),
                 w = sawtooth({16, 3, 3, 1}, dtype, 0.11f),
                 by = sawtooth({8, 1, 1, 16}, dtype, 0.07f);
    const auto layout = ImageLayout::nhwc;
    const Tensor one = depthwise_separable_conv2d(
        x, w, by, {.padding = 1, .depthwise_activation = ConvActivation::relu6, .layout = layout});
    const Tensor middle = depthwise_conv2d(
        x, w, {.padding = 1, .activation = ConvActivation::relu6, .layout = layout});
    const std::vector<float> a = numbers_of(astype(one, {.dtype = DType::float32})),
                             b = numbers_of(astype(conv2d(middle, by, {.layout = layout}),
                                                   {.dtype = DType::float32}));
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a[i], b[i], dtype == DType::float32 ? 1e-4 : 0.05) << "at " << i;
  }
}

TEST(DepthwiseSeparableConv2d, WhatCannotBeIsRefusedByName) {
  const auto t = [](const Dims& shape, DType dtype = DType::float32) {
    return Tensor(dtype, shape);
  };
  const auto refuses = [&](ErrorKind kind, const char* text, const Dims& depthwise,
                           const Dims& pointwise, DType dtype = DType::float32) {
    test::expect_error_with(kind, text, [&] {
      depthwise_separable_conv2d(t({2, 4, 5, 6}), t(depthwise), t(pointwise, dtype));
    });
  };
  refuses(ErrorKind::value, "depthwise: expected a window of 1 channel for each of the 4 channels",
          {8, 1, 3, 3}, {6, 4, 1, 1});
  refuses(ErrorKind::value, "got 4 of 2", {4, 2, 3, 3}, {6, 4, 1, 1});
  refuses(ErrorKind::value, "pointwise: expected windows of one place, got 3 x 1", {4, 1, 3, 3},
          {6, 4, 3, 1});
  refuses(ErrorKind::value, "pointwise: expected filters of the 4 channels of x, got 5",
          {4, 1, 3, 3}, {6, 5, 1, 1});
  refuses(ErrorKind::value, "covers 7 rows", {4, 1, 7, 1}, {6, 4, 1, 1});
  refuses(ErrorKind::type, "pointwise: Dtype", {4, 1, 3, 3}, {6, 4, 1, 1}, DType::float16);
  test::expect_error_with(ErrorKind::value, "expected 4 dimensions", [&] {
    depthwise_separable_conv2d(t({4, 5, 6}), t({4, 1, 3, 3}), t({6, 4, 1, 1}));
  });
  test::expect_error_with(ErrorKind::value, "pointwise: expected 4 dimensions, filters, ", [&] {
    depthwise_separable_conv2d(t({1, 4, 5, 6}), t({4, 1, 3, 3}), t({6, 4}));
  });
}

// 32 images of 56 x 56 and 128 channels, 3 x 3, 128 filters.
separable::Params separable_layer() {
  alignas(16) static std::byte memory[16];
  return {.x = memory,
          .depthwise = memory,
          .pointwise = memory,
          .out = memory,
          .batch = 32,
          .channels = 128,
          .filters = 128,
          .rows = {56, 56, 3, 1, 1, 1},
          .columns = {56, 56, 3, 1, 1, 1},
          .x_at = {56 * 56 * 128, 56 * 128, 128, 1},
          .out_at = {56 * 56 * 128, 56 * 128, 128, 1},
          .depthwise_at = {9, 3, 1},
          .pointwise_at = {128, 1}};
}
const op::Gpu kSeparableGpu{
    .architecture = 90, .num_sms = 132, .shared_bytes_per_block = 227 << 10};
constexpr separable::Given kSeparableHalves{2, ConvActivation::relu6, ConvActivation::none};

TEST(DepthwiseSeparableConv2d, FusedSaysWhatItCannotHold) {
  using Params = separable::Params;
  const std::pair<const char*, std::function<void(Params&)>> cases[] = {
      {"needs a window of at most 25 taps", [](Params& p) { p.rows.taps = 9; }},
      {"needs a multiple of 8 channels", [](Params& p) { p.channels = 12; }},
      {"needs channels of x side by side", [](Params& p) { p.x_at.channel = 2; }},
      {"needs channels of x side by side", [](Params& p) { p.x_at.row += 4; }},
      {"needs channels of pointwise side by side", [](Params& p) { p.pointwise_at.channel = 2; }},
      {"needs fewer than 2^30 pieces", [](Params& p) { p.batch = int64_t(1) << 21; }},
      {"needs fewer than 2^30 pieces", [](Params& p) { p.x_at.row = int64_t(1) << 28; }},
      {"needs more shared memory for all channels", [](Params& p) { p.channels = 2048; }},
  };
  EXPECT_EQ(separable::fused(separable_layer(), kSeparableHalves, kSeparableGpu).refusal, "");
  for (const auto& [text, spoil] : cases) {
    Params p = separable_layer();
    spoil(p);
    const std::string_view why = separable::fused(p, kSeparableHalves, kSeparableGpu).refusal;
    EXPECT_NE(why.find(text), why.npos) << "expected \"" << text << "\" in: " << why;
  }
  EXPECT_EQ(separable::fused(separable_layer(), {4, {}, {}}, kSeparableGpu).refusal,
            "needs float16 or bfloat16");
}

TEST(DepthwiseSeparableConv2d, TilesFollowTheChannels) {
  const auto config = [](int64_t channels) {
    separable::Params p = separable_layer();
    p.channels = channels;
    return separable::fused(p, kSeparableHalves, kSeparableGpu).start.config;
  };
  EXPECT_EQ(config(32).block_m, 128);
  EXPECT_EQ(config(96).block_k, 32);
  EXPECT_EQ(config(128).block_k, 64);
  EXPECT_EQ(config(256).threads, 128);
  EXPECT_EQ(config(512).threads, 256);
}

// Every piece of every row is one thread's, and no thread has two.
TEST(DepthwiseSeparableConv2d, BandsHaveAllRows) {
  for (int64_t rows = 1; rows < 60; ++rows) {
    const int64_t band = separable::rows_of_band(rows);
    EXPECT_LE(band, 8);
    EXPECT_LT(round_up(rows, band) - rows, std::min<int64_t>(rows, 4)) << rows << " in " << band;
  }
}

}  // namespace
}  // namespace tensorcraft

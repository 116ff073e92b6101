// SPDX-License-Identifier: Apache-2.0
// What the launchers of convolutions check, and which kernels they have; runs without a GPU.
#include "tensorcraft/kernels/conv2d.cuh"
#include "tests/kernels/thrown_text.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace tensorcraft::kernels {
namespace {

float* const kImages = reinterpret_cast<float*>(uintptr_t(256));  // never read

// The widths and Configs that are compiled, looked for as a launch looks for them.
template <class List, class Config>
bool is_in(const List& list, const op::Start<Config>& start) {
  return std::any_of(list.begin(), list.end(), [&](const auto& instance) {
    return is_same_config(start.config, instance.config) && instance.min_blocks == start.min_blocks;
  });
}

// A convolution of 56 x 56 images, 3 x 3.
ConvShape conv_shape(int64_t channels, int64_t filters, int64_t stride = 1, int64_t taps = 3) {
  const WindowAlong along{.size = 56, .taps = taps, .stride = stride, .before = 1, .after = 1};
  return {.batch = 2, .channels = channels, .filters = filters, .rows = along, .columns = along};
}

TEST(ConvolutionLaunchers, HaveEveryKernel) {
  namespace c = detail::conv2d;
  constexpr auto kNone = ConvActivation::none;
  const op::Gpu gpu{.architecture = 80, .num_sms = 108};
  const c::Tensors t{kImages, kImages, nullptr, nullptr, kImages};
  for (const int64_t filters : {1, 30, 64, 128, 256, 257})
    for (ConvShape shape : {conv_shape(64, filters), conv_shape(64, filters, 2)})
      for (const auto layout : {ImageLayout::nchw, ImageLayout::nhwc}) {
        shape.layout = layout;
        for (const int64_t batch : {1, 64}) {
          shape.batch = batch;
          const auto p = c::contiguous_params(t, c::sizes_of("", shape, 1));
          EXPECT_TRUE(is_in(c::kTiledInstances<kNone>, c::tiled(p, {2, kNone}, gpu).start));
          EXPECT_TRUE(is_in(c::kNaiveInstances<kNone>, c::naive(p, {2, kNone}, gpu).start));
          const c::Choice product = c::implicit_gemm<false>(p, {2, kNone}, gpu);
          EXPECT_EQ(product.refusal.empty(), layout == ImageLayout::nhwc);
          if (product.refusal.empty()) EXPECT_TRUE(is_in(c::kGemmInstances<kNone>, product.start));
        }
      }
  for (const int64_t taps : {2, 3, 5})
    for (const int64_t stride : {1, 2, 3}) {
      const ConvShape shape = conv_shape(64, 64, stride, taps);
      const auto p = c::contiguous_params(t, c::sizes_of("", shape, 64));
      EXPECT_TRUE(
          is_in(c::kDepthwiseInstances<bf16, kNone>, c::depthwise(p, {2, kNone}, gpu).start));
      EXPECT_TRUE(
          is_in(c::kDepthwiseInstances<float, kNone>, c::depthwise(p, {4, kNone}, gpu).start));
      const c::Choice sliding = c::sliding(p, {2, kNone}, gpu);
      EXPECT_EQ(sliding.refusal.empty(), taps != 2 && stride != 3);
      if (sliding.refusal.empty())
        EXPECT_TRUE(is_in(c::kSlidingInstances<bf16, kNone>, sliding.start));
    }
}

TEST(ConvolutionLaunchers, RefuseWindowsAndGroupsThatCannotBe) {
  const auto refuses = [](const std::string& text, const auto& spoil) {
    ConvShape shape = conv_shape(8, 8);
    spoil(shape);
    EXPECT_EQ(
        text_of<std::invalid_argument>([&] { launch_conv2d(kImages, kImages, kImages, shape); }),
        text);
  };
  refuses("launch_conv2d: columns: the window covers 61, but the padded image has 58",
          [](ConvShape& s) { s.columns.dilation = 30; });
  refuses("launch_conv2d: rows: taps, stride and dilation must be from 1 to 2^31 - 1",
          [](ConvShape& s) { s.rows.stride = 0; });
  refuses("launch_conv2d: rows: size and margins must be from 0 to 2^31 - 1",
          [](ConvShape& s) { s.rows.after = -1; });
  refuses("launch_conv2d: groups must be at least 1, and divide channels and filters",
          [](ConvShape& s) { s.groups = 3; });
  EXPECT_EQ(text_of<std::invalid_argument>(
                [] { launch_depthwise_conv2d(kImages, kImages, kImages, conv_shape(8, 12)); }),
            "launch_depthwise_conv2d: groups must be at least 1, and divide channels and filters");
  const ConvArguments<float> unknown{.variant = "winograd"};
  EXPECT_EQ(text_of<std::invalid_argument>(
                [&] { launch_conv2d(kImages, kImages, kImages, conv_shape(8, 8), unknown); }),
            "launch_conv2d: variant must be one of tiled, naive");
  EXPECT_EQ(text_of<std::invalid_argument>(
                [] { launch_im2col(kImages, static_cast<float*>(nullptr), conv_shape(8, 8)); }),
            "launch_im2col: out is null");
  ConvShape empty = conv_shape(8, 8);
  empty.batch = 0;
  EXPECT_EQ(launch_conv2d<ConvActivation::relu>(kImages, kImages, kImages, empty), "");
}

}  // namespace
}  // namespace tensorcraft::kernels

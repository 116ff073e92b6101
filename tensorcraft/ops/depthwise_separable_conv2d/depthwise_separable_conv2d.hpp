// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/checks/conv_activation.hpp"
#include "tensorcraft/op/checks/window.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of depthwise_separable_conv2d() besides the arrays that it needs.
struct DepthwiseSeparableConv2dOptions {
  std::optional<TensorView> depthwise_bias = {};  // [channels], added between the convolutions
  std::optional<TensorView> bias = {};            // [filters], added to each channel of the result
  Dims stride = {1};                              // of the window, one number or rows and columns
  ImagePadding padding = {};                      // zeros around each image
  Dims dilation = {1};                            // steps from one tap to the next
  ConvActivation depthwise_activation = ConvActivation::none;  // between the convolutions
  ConvActivation activation = ConvActivation::none;            // after the additions
  std::optional<TensorView> residual = {};                     // shape of the result, added to it
  ImageLayout layout = ImageLayout::nchw;                      // of x, both weights and the result
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// depthwise_conv2d() and then conv2d() with a window of one place, in one call:
//   out = activation(depthwise_activation(x * depthwise + depthwise_bias) * pointwise + bias +
//                    residual)
// layout nchw: x is [batch, channels, rows, columns], depthwise [channels, 1, taps, taps] and
// pointwise [filters, channels, 1, 1]; nhwc: channels last in all of them. Any strides. float32,
// float16 or bfloat16, all of one dtype; sums are float32, and what is between both convolutions is
// rounded to the dtype once, as two calls do. The batch may be empty. Kinds: type for a dtype,
// value for weights of other channels than x, and for a window larger than the padded image.
void depthwise_separable_conv2d(const TensorView& out, const TensorView& x,
                                const TensorView& depthwise, const TensorView& pointwise,
                                const DepthwiseSeparableConv2dOptions& options = {});
Tensor depthwise_separable_conv2d(const TensorView& x, const TensorView& depthwise,
                                  const TensorView& pointwise,
                                  const DepthwiseSeparableConv2dOptions& options = {});

}  // namespace tensorcraft

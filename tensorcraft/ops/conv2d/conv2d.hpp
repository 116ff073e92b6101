// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/checks/conv_activation.hpp"
#include "tensorcraft/op/checks/window.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of conv2d() and depthwise_conv2d() besides the arrays that they need.
struct Conv2dOptions {
  std::optional<TensorView> bias = {};  // [filters], added to each channel of the result
  Dims stride = {1};                    // of the window, one number or rows and columns
  ImagePadding padding = {};            // zeros around each image
  Dims dilation = {1};                  // steps from one tap to the next
  int64_t groups = 1;                   // of channels, each with filters of its own; 1 for
                                        // depthwise_conv2d(), which has one a channel
  ConvActivation activation = ConvActivation::none;  // after the additions
  std::optional<TensorView> residual = {};           // shape of the result, added to it
  ImageLayout layout = ImageLayout::nchw;            // of x, w and the result
  std::optional<bool> allow_tf32 = {};   // may round float32 to tf32; none: as configured
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// out = activation(x * w + bias + residual), where * is the cross-correlation of each image of x
// with each filter of w. layout nchw: x is [batch, channels, rows, columns], w is [filters,
// channels / groups, taps, taps]; nhwc: channels last in both. Any strides, so the images of one
// layout may lie in memory as those of the other. float32, float16 or bfloat16, all of one dtype;
// sums are float32, rounded once. The batch may be empty. float32 is not rounded before it is
// multiplied unless allow_tf32, given or configured, says that it may be. Kinds: type for a dtype,
// value for channels or filters that groups do not divide, for w of other channels than a group's,
// and for a window larger than the padded image.
void conv2d(const TensorView& out, const TensorView& x, const TensorView& w,
            const Conv2dOptions& options = {});
Tensor conv2d(const TensorView& x, const TensorView& w, const Conv2dOptions& options = {});

// conv2d() with as many groups as channels; w has one channel, and a multiple of x's channels as
// filters.
void depthwise_conv2d(const TensorView& out, const TensorView& x, const TensorView& w,
                      const Conv2dOptions& options = {});
Tensor depthwise_conv2d(const TensorView& x, const TensorView& w,
                        const Conv2dOptions& options = {});

// Options of im2col().
struct Im2colOptions {
  Dims window = {1};                       // taps, one number or rows and columns
  Dims stride = {1};                       // of the window
  ImagePadding padding = {};               // zeros around each image
  Dims dilation = {1};                     // steps from one tap to the next
  ImageLayout layout = ImageLayout::nchw;  // of x
  std::string_view variant = {};           // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};    // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// The windows of images as columns of a matrix, so that a convolution is a product of matrices:
// nchw gives [batch, channels * taps, positions] for w.reshape(filters, -1) @ out, nhwc [batch,
// positions, taps * channels] for out @ w.reshape(filters, -1).T. Any dtype of 2 or 4 bytes that
// conv2d() takes; bits are copied, and 0 outside an image.
void im2col(const TensorView& out, const TensorView& x, const Im2colOptions& options = {});
Tensor im2col(const TensorView& x, const Im2colOptions& options = {});

}  // namespace tensorcraft

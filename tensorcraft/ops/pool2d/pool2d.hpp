// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/checks/window.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of max_pool2d() besides the images.
struct MaxPool2dOptions {
  Dims window = {2};                       // taps, one number or rows and columns
  std::optional<Dims> stride = {};         // of the window; none: as long as it
  ImagePadding padding = {};               // around each image; never the maximum
  Dims dilation = {1};                     // steps from one tap to the next
  ImageLayout layout = ImageLayout::nchw;  // of x and the result
  std::string_view variant = {};           // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};    // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Arguments of avg_pool2d() besides the images.
struct AvgPool2dOptions {
  Dims window = {2};                       // taps, one number or rows and columns
  std::optional<Dims> stride = {};         // of the window; none: as long as it
  ImagePadding padding = {};               // zeros around each image
  bool count_padding = true;               // are those zeros counted?
  ImageLayout layout = ImageLayout::nchw;  // of x and the result
  std::string_view variant = {};           // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};    // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// The maximum, or the mean, of each window of each channel of images. layout nchw: x is [batch,
// channels, rows, columns]; nhwc: channels last. float32, float16 or bfloat16, any strides;
// computed in float32. A maximum is NaN if its window has one, and -inf if the window has no
// element of the image; a mean without elements is 0. Kind value for a window larger than the
// padded image.
void max_pool2d(const TensorView& out, const TensorView& x, const MaxPool2dOptions& options = {});
Tensor max_pool2d(const TensorView& x, const MaxPool2dOptions& options = {});
void avg_pool2d(const TensorView& out, const TensorView& x, const AvgPool2dOptions& options = {});
Tensor avg_pool2d(const TensorView& x, const AvgPool2dOptions& options = {});

}  // namespace tensorcraft

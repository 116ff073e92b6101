// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft {

// The order of the axes of images: batch, channels, rows, columns; or channels last.
enum class ImageLayout : int { nchw, nhwc };

// How a window moves along one axis of an image: output i reads the input at first(i) and every
// `dilation` on from there, `taps` of them, as far as they lie in the image.
struct WindowAxis {
  int64_t in, out, taps, stride, dilation, before;

  TC_HOST_DEVICE constexpr int64_t first(int64_t i) const { return i * stride - before; }
  // The input of a tap of output i; perhaps outside the image.
  TC_HOST_DEVICE constexpr int64_t at(int64_t i, int64_t tap) const {
    return first(i) + tap * dilation;
  }
  TC_HOST_DEVICE constexpr bool has(int64_t place) const { return place >= 0 && place < in; }
};

// Where the elements of images are, in elements.
struct ImageStrides {
  int64_t sample, row, column, channel;

  TC_HOST_DEVICE constexpr int64_t offset(int64_t n, int64_t y, int64_t x, int64_t c) const {
    return n * sample + y * row + x * column + c * channel;
  }
  // The strides of images without gaps.
  TC_HOST_DEVICE static constexpr ImageStrides dense(ImageLayout layout, int64_t channels,
                                                     int64_t rows, int64_t columns) {
    const int64_t image = channels * rows * columns;
    return layout == ImageLayout::nhwc ? ImageStrides{image, columns * channels, channels, 1}
                                       : ImageStrides{image, columns, 1, rows * columns};
  }
};

}  // namespace tensorcraft

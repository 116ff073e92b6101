// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/device/window.h"

#include <cstdint>

namespace tensorcraft::host::onednn {

// Images of groups * channels channels with filters of `channels` channels, `filters` of a group.
// Elements are where the strides say; of w a sample is a filter. bias is null or side by side, of
// the same dtype.
struct Convolution {
  DType dtype;
  int64_t batch, groups, channels, filters;
  WindowAxis rows, columns;
  const void *x, *w, *bias;
  void* out;
  ImageStrides x_at, w_at, out_at;
};

// Why convolve() does not take it; null if it does. The first answer prepares primitives.
const char* declines(const Convolution& convolution);

// out = x * w + bias; sums are float32, rounded once. A tap outside the image is left out, which is
// right unless its weight is infinite or NaN: false then, and out is undefined. Fails with kind
// unsupported if declines() has a reason.
bool convolve(const Convolution& convolution);

}  // namespace tensorcraft::host::onednn

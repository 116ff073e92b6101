// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/window.h"

namespace tensorcraft::kernel::pool2d {

// Run time: what the host passes to every rung. Images are seen channels last, whatever their
// layout.
struct Params {
  const void* x;
  void* out;
  int64_t batch, channels;
  WindowAxis rows, columns;
  ImageStrides x_at, out_at;
  int64_t count_padding;  // are taps outside the image counted in a mean?
};

// Compile time: each value of a Config that a choice gives is a kernel of its own.
struct Config {
  int threads = 256;
  int vector = 1;  // channels of a thread
  int mean = 0;    // else the maximum
};

}  // namespace tensorcraft::kernel::pool2d

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/window.h"
#include "tensorcraft/kernels/arguments.hpp"

#include <stdexcept>
#include <string>

// Arguments of launchers with a window over images: the half that any compiler takes.
namespace tensorcraft::kernels {

// Rows or columns of an image, and how a window moves over them.
struct WindowAlong {
  int64_t size, taps = 1;         // of the image, of the window
  int64_t stride = 1;             // from one place of the window to the next
  int64_t before = 0, after = 0;  // zeros around the image
  int64_t dilation = 1;           // from one tap to the next
};

// The same with the size of the result. std::invalid_argument for a size, a margin or a count that
// is negative or above 2^31 - 1, and for a window larger than the padded image.
inline WindowAxis window_axis(const char* launcher, const char* name, const WindowAlong& a) {
  constexpr int64_t kMost = (int64_t(1) << 31) - 1;
  const auto fails = [&](const std::string& what) {
    throw std::invalid_argument(std::string(launcher) + ": " + name + ": " + what);
  };
  const auto is_between = [](int64_t n, int64_t least) { return n >= least && n <= kMost; };
  if (!is_between(a.size, 0) || !is_between(a.before, 0) || !is_between(a.after, 0))
    fails("size and margins must be from 0 to 2^31 - 1");
  if (!is_between(a.taps, 1) || !is_between(a.stride, 1) || !is_between(a.dilation, 1))
    fails("taps, stride and dilation must be from 1 to 2^31 - 1");
  const int64_t span = (a.taps - 1) * a.dilation + 1, padded = a.size + a.before + a.after;
  if (span > padded)
    fails("the window covers " + std::to_string(span) + ", but the padded image has " +
          std::to_string(padded));
  return {a.size, (padded - span) / a.stride + 1, a.taps, a.stride, a.dilation, a.before};
}

}  // namespace tensorcraft::kernels

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tiled_tensor.hpp"

namespace tensorcraft {

// Images, channels last, and the places of windows over them that one copy of the copy engine
// (TMA) brings: as many channels as box[0] of as many places as box[1], one behind the other along
// columns, rows and images. Which element of the windows it brings is an offset of the copy.
struct Im2colTensor {
  // Channels, columns, perhaps rows and planes, and images: rank 3 to 5. element_strides are from
  // one window to the next; the box has no other sizes than those two.
  TiledTensor images;
  // The first window's first place, from the image's first, and the last window's, from the image's
  // last: of columns, rows and planes.
  std::array<int32_t, 3> lower{}, upper{};

  int num_axes() const { return images.rank - 2; }  // that windows move along
  // The windows along axis i.
  int64_t num_windows(int i) const {
    const auto last = int64_t(images.dims[size_t(i) + 1]) - 1 + upper[size_t(i)];
    return (last - lower[size_t(i)]) / int64_t(images.element_strides[size_t(i) + 1]) + 1;
  }
};

// These bounds depend on the number of axes: offsets of a copy are below the first, corners from
// minus the second to below it.
constexpr int32_t im2col_offset_end(int num_axes) { return 1 << 16 / num_axes; }
constexpr int32_t im2col_corner_end(int num_axes) { return im2col_offset_end(num_axes) / 2; }
inline constexpr uint32_t kMaxIm2colPlaces = 1024;  // of a copy

// Kind value, with the rule that is broken, if the copy engine cannot move such windows.
void check_im2col(const Im2colTensor& tensor);

}  // namespace tensorcraft

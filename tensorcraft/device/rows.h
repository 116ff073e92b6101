// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft {

// Where the rows of a tensor begin: every axis but the row's own, neighbours merged where their
// strides allow it. Rows count in row-major order of the axes, so the maps of two tensors agree.
struct RowMap {
  static constexpr int kMaxAxes = 8;
  int64_t size[kMaxAxes];
  int64_t stride[kMaxAxes];  // elements
  int32_t axes;

  // Rows along one axis at most need no division: a kernel that knows so says kNested = false, and
  // compiles in less time.
  template <bool kNested = true>
  TC_HOST_DEVICE int64_t offset(int64_t row) const {
    if constexpr (!kNested) return row * stride[0];  // without an axis that is 0
    int64_t at = 0;
#if defined(__CUDA_ARCH__)
#pragma unroll 1  // a division is 100 instructions; unrolled it is most of a kernel's compile time
#endif
    for (int i = axes - 1; i >= 0; --i) {
      at += row % size[i] * stride[i];
      row /= size[i];
    }
    return at;
  }
};

}  // namespace tensorcraft

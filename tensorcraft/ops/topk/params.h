// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::topk {

inline constexpr int kMaxK = 64;

// Run time. Steps are strides along the axis; indices is null if they are not wanted.
struct Params {
  const void* x;
  void* out;
  int64_t* indices;
  int64_t rows, cols, k;
  int64_t x_step, out_step, indices_step;
  RowMap x_rows, out_rows, indices_rows;
};

// Compile time. `slots` elements of the row are in each lane of a warp.
struct Config {
  int threads = 256;
  int slots = 1;
  int nested = 0;  // rows do not merge into one axis
};

}  // namespace tensorcraft::kernel::topk

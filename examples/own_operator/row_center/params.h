// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::row_center {

// Run time: what the host passes to every rung. Neighbours in a row are x_step and out_step
// elements apart; where a row begins the maps say.
struct Params {
  const void* x;
  void* out;
  int64_t rows, cols, x_step, out_step;
  RowMap x_map, out_map;
};

// Compile time: each value of a Config that a choice gives is a kernel of its own.
struct Config {
  int threads = 128;
};

}  // namespace tensorcraft::kernel::row_center

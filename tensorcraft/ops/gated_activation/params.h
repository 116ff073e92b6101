// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/activation.h"
#include "tensorcraft/device/divider.h"
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::gated_activation {

// Run time: rows and cols are those of out; a row of x is cols gates, then the cols values they
// multiply. x_step and out_step are strides along the last axis, step those of rows.
struct Params {
  enum { kX, kOut, kTensors };
  int64_t x_step, out_step;
  const void* x;
  void* out;
  int64_t rows, cols;
  Divider by_tiles;  // vectorized: of a row
  int64_t step[kTensors];
};

struct Config {
  Activation gate;  // what the first half of a row goes through: silu, gelu or gelu_tanh
  int threads = 256;
  int group = 1;    // threads next to each other in a row
  int vectors = 1;  // accesses that a thread has in flight in each half
  int nested = 0;   // the rows of a tensor lie along more than one axis
};

}  // namespace tensorcraft::kernel::gated_activation

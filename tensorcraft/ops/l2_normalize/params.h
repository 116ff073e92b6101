// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::l2_normalize {

// Run time: what the host passes to every rung. x_step and out_step are strides along the
// normalised axis, step those of rows.
struct Params {
  enum { kX, kOut, kTensors };
  int64_t x_step, out_step;
  const void* x;
  void* out;
  int64_t rows, cols;
  float eps;
  int64_t step[kTensors];
};

// Compile time: what the host writes into the entry.
struct Config {
  int threads = 256;
  int group = 256;  // threads that share a row
  int vector = 1;   // elements of one memory access
  int slots = 1;    // accesses of a thread that hold a whole row together
  int whole = 0;    // the slots of a group, or of a cluster's blocks, are the row exactly
  int cluster = 1;  // blocks that share a row
  int nested = 0;   // the rows of a tensor lie along more than one axis
};

}  // namespace tensorcraft::kernel::l2_normalize

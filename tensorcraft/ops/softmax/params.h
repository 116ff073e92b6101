// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::softmax {

// Steps are strides along the softmax axis.
struct Params {
  const void* x;
  void* out;
  int64_t rows, cols;
  int64_t x_step, out_step;
  RowMap x_rows, out_rows;
};

struct Config {
  int threads = 256;
  int group = 256;  // threads that share a row
  int vector = 1;   // elements of one memory access
  int slots = 1;    // accesses of a thread that hold a whole row together
  int whole = 0;    // the slots of a group are the row exactly
  int nested = 0;   // the rows of a tensor lie along more than one axis
  int cluster = 1;  // blocks that share a row
};

}  // namespace tensorcraft::kernel::softmax

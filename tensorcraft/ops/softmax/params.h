// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::softmax {

// What becomes of a row: its weights, their logarithms, or the logarithm of their sum, one value.
enum class Form : int { softmax, log_softmax, logsumexp };
// What a mask holds: false for what is hidden, or numbers that are added, of x's type or float32.
enum class Mask : int { none, boolean, like_x, float32 };

// Run time. x_step, mask_step and out_step are strides along the softmax axis; step those of rows.
// The mask has the shape of x and is null if there is none; logsumexp writes one value a row.
struct Params {
  enum { kX, kMask, kOut, kTensors };
  const void* x;
  const void* mask;
  void* out;
  int64_t rows, cols;
  int64_t x_step, mask_step, out_step;
  float scale;      // multiplies x before the mask is added
  uint32_t* taken;  // of persistent: rows that blocks have claimed; 0 at first and at last
  int64_t step[kTensors];
};

struct Config {
  int threads = 256;
  int group = 256;  // threads that share a row
  int vector = 1;   // elements of one memory access
  int slots = 1;    // accesses of a thread that hold a whole row together
  int whole = 0;    // the slots of a group are the row exactly
  int nested = 0;   // the rows of a tensor lie along more than one axis
  int cluster = 1;  // blocks that share a row
  int stages = 0;   // rows that have a place in shared memory
  Form form = Form::softmax;
  Mask mask = Mask::none;
  int scaled = 0;  // the scale is looked at: never without need, since it takes registers
};

}  // namespace tensorcraft::kernel::softmax

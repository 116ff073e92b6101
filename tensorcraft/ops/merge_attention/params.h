// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::merge_attention {

// Run time: rows of `cols` elements, each with a logarithm. The steps are strides along a row.
struct Params {
  enum { kOutA, kOutB, kOut, kLseA, kLseB, kLse, kTensors };
  const void *out_a, *out_b;
  void* out;
  const float *lse_a, *lse_b;
  float* lse;  // null: not wanted
  int64_t rows, cols;
  int64_t a_step, b_step, out_step;
  int64_t step[kTensors];
};

struct Config {
  int threads = 256;
  int group = 1;   // vectorized: threads that share a row
  int nested = 0;  // the rows of a tensor lie along more than one axis
};

}  // namespace tensorcraft::kernel::merge_attention

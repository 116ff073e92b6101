// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::cross_entropy {

// Run time: a row of logits, a target, a loss and, unless lse is null, a logarithm of the sum of
// exponentials for each of `rows`.
struct Params {
  enum { kLogits, kTargets, kOut, kLse, kTensors };
  const void* logits;
  const void* targets;
  float *out, *lse;
  int64_t rows, classes, class_step;
  int64_t ignore_index;
  float ignored;  // the loss of a row whose target is ignore_index
  int64_t step[kTensors];
};

struct Config {
  int threads = 512;
  int group = 512;  // threads that share a row
  int loads = 4;    // 16-byte accesses a thread has in flight
  int nested = 0;   // rows or targets lie along more than one axis
};

// The step that reduces, of one block: the losses of rows that were ignored are -0.
struct ReduceParams {
  const float* losses;  // next to each other, at a multiple of 16 bytes
  float* out;           // one number
  int64_t rows;
  int32_t mean;  // 1: divide by the number of rows that count
};

struct ReduceConfig {
  int threads = 1024;
};

}  // namespace tensorcraft::kernel::cross_entropy

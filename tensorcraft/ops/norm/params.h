// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/activation.h"
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::norm {

// What a row is divided by: its deviation, after its mean is subtracted, or its root mean square.
enum class Form : int { layer, rms };

// Run time. Steps are strides along the last axis; a pointer is null if the tensor is not given.
// bias, activation, mean and rstd are of layer alone.
struct Params {
  enum { kX, kResidual, kOut, kResidualOut, kTensors };
  // What most rungs do not read stands in front of what they do, which so lies together.
  int64_t x_step, residual_step, out_step, residual_out_step;
  // Of the rungs that quantise: the scale of every code, or where each row's own is stored; and the
  // activation where it is not compiled in.
  float scale;
  Activation activation;
  float* scales;
  uint32_t* taken;  // of persistent: rows that blocks have claimed; 0 at first and at last
  const void *x, *residual;
  const void *weight, *bias;  // cols elements next to each other
  void *out, *residual_out;
  float *mean, *rstd;  // rows elements next to each other
  int64_t rows, cols;
  float inverse_cols, eps;
  int64_t step[kTensors];
};

struct Config {
  int threads = 256;
  int group = 256;  // threads that share a row
  int vector = 1;   // elements of one memory access
  int slots = 1;    // accesses of a thread that hold a whole row together
  Activation activation = Activation::none;
  int has_residual = 0;
  int has_weight = 0;
  int has_bias = 0;
  int whole = 0;    // the slots of a group are the row exactly
  int nested = 0;   // the rows of a tensor lie along more than one axis
  int cluster = 1;  // blocks that share a row
  int stages = 0;   // rows that have a place in shared memory
  Form form = Form::layer;
};

}  // namespace tensorcraft::kernel::norm

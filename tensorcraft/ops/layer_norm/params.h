// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/activation.h"
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::layer_norm {

// Run time: what the host passes to every rung. Steps are strides along the last axis; a pointer
// is null where the tensor is not given.
struct Params {
  enum { kX, kResidual, kOut, kResidualOut, kTensors };  // of the maps
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
  RowMaps<kTensors> maps;
};

// Compile time: what the host writes into the entry.
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
  int stages = 1;   // rows that have a place in shared memory
};

}  // namespace tensorcraft::kernel::layer_norm

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/activation.h"
#include "tensorcraft/device/divider.h"
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::batch_norm {

// Where the elements of a tensor (batch, channels, spatial...) lie: strides in elements, and the
// positions of a plane, which is what one channel of one sample has.
struct Layout {
  int64_t batch, channel;
  RowMap spatial;
};

// Run time: what the host passes to every rung of the forward direction. A vector has an element a
// channel; a pointer is null if it is not given.
struct Params {
  const void* x;
  const void *weight, *bias, *running_mean, *running_var;
  void* out;
  float *mean, *rstd;
  void *running_mean_out, *running_var_out;
  int64_t batch, channels, spatial;
  Layout x_layout, out_layout;
  Divider by_spatial;  // used if planes have fewer than 2^30 elements
  float eps, momentum;
  Activation activation;  // as in Config; the rung naive reads it here
};

// Params of the backward direction.
struct BackwardParams {
  const void *grad, *x, *weight;
  const float *mean, *rstd;
  void *grad_input, *grad_weight, *grad_bias;
  int64_t batch, channels, spatial;
  Layout grad_layout, x_layout, out_layout;
};

inline constexpr int kMaxPlanes = 1024;  // that a block of the rung planes meets

// Compile time: what the host writes into the entry. A rung reads some of it.
struct Config {
  int threads = 256;
  int vector = 1;   // elements of one memory access
  int slots = 1;    // accesses of a thread in flight
  int cluster = 1;  // blocks that share a channel
  Activation activation = Activation::none;
  int training = 0;
  int whole = 0;   // planes are whole accesses, so none lies in two of them
  int nested = 0;  // the positions of a plane lie along more than one axis
};

}  // namespace tensorcraft::kernel::batch_norm

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/divider.h"
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::group_norm {

// Run time: what the host passes to every rung. A row is a group of one sample: group_channels
// planes of `spatial` elements. Strides are in elements; vectors have an element a channel, and are
// null if they are not given.
struct Params {
  const void* x;
  const void *weight, *bias;
  void* out;
  int64_t rows, cols;  // cols = group_channels * spatial
  int64_t groups, group_channels, spatial;
  int64_t x_batch, x_channel, out_batch, out_channel;
  RowMap x_spatial, out_spatial;  // the positions of a plane
  Divider by_spatial;             // used if rows have fewer than 2^30 elements
  float inverse_cols, eps;
};

// Compile time: what the host writes into the entry. A rung reads some of it.
struct Config {
  int threads = 256;
  int group = 256;  // threads that share a row
  int vector = 1;   // elements of one memory access
  int slots = 1;    // accesses of a thread: that hold a row together, or that are in flight
  int cluster = 1;  // blocks that share a row
  int whole = 0;    // the slots of a group are the row exactly
  int planes = 0;   // planes are whole accesses, so none lies in two of them
  int nested = 0;   // the positions of a plane lie along more than one axis
};

}  // namespace tensorcraft::kernel::group_norm

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/checked_index.cuh"

namespace tensorcraft::kernel::masked_mean {

// Run time: out[b, d] = the mean of x[b, 0 .. lengths[b], d]. Strides are in elements.
struct Params {
  const void *x, *lengths;
  void* out;
  int64_t batch, steps, cols;
  int64_t x_strides[3], lengths_stride, out_strides[2];
};

struct Config {
  int threads = 256;
};
inline constexpr int kLanes = 32;  // columns of a block of rung block: one for each lane

// How many steps count; a length outside [0, steps] is taken to the nearer end.
template <class Length>
TC_DEVICE int64_t valid_steps(const Params& p, int64_t b) {
  const int64_t length = static_cast<const Length*>(p.lengths)[b * p.lengths_stride];
  return checked_count(length, p.steps, b, "masked_mean", "lengths", "the steps of x");
}

}  // namespace tensorcraft::kernel::masked_mean

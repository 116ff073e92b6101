// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/conv_activation.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/ops/depthwise_separable_conv2d/params.h"

// How both rungs finish their sums.
namespace tensorcraft::kernel::depthwise_separable_conv2d {

// A place of the result.
struct Place {
  int64_t sample, row, column;
};

template <class T>
TC_DEVICE float element(const void* from, int64_t offset) {
  return float(static_cast<const T*>(from)[offset]);
}

// Adds N neighbours of the residual, if there is one, activates, rounds and stores them.
template <class T, int N, class Activate>
TC_DEVICE void finish(const Params& p, const float (&sums)[N], int64_t residual, int64_t out,
                      const Activate& activated) {
  float x[N];
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] = sums[i];
  if (p.residual) {
    const auto add = Packed<T, N>::load(static_cast<const T*>(p.residual) + residual);
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] += add[i];
  }
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] = activated(x[i]);
  from_floats<T, N>(x).store(static_cast<T*>(p.out) + out);
}

}  // namespace tensorcraft::kernel::depthwise_separable_conv2d

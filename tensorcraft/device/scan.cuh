// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/reduce.cuh"

namespace tensorcraft {

// The sum of the lanes up to this one.
template <class T>
TC_DEVICE T warp_scan(T v) {
  const int lane = int(threadIdx.x) % kWarpSize;
  for (int lanes = 1; lanes < kWarpSize; lanes *= 2) {
    const T below = __shfl_up_sync(kFullWarp, v, unsigned(lanes));
    if (lane >= lanes) v += below;
  }
  return v;
}

}  // namespace tensorcraft

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

// Part of the kernel's shared struct; one serves any number of scans in turn.
template <class T>
struct BlockScan {
  T of[kMaxWarps];
};
// The sum of `before` and the values of threads in front of this one; `before` becomes that of all.
// The block is kThreads in one dimension, whole warps, and all of them call.
template <int kThreads, class T>
TC_DEVICE T sum_in_front(BlockScan<T>& shared, T own, T& before) {
  constexpr int kWarps = kThreads / kWarpSize;
  const int lane = int(threadIdx.x) % kWarpSize, warp = int(threadIdx.x) / kWarpSize;
  const T scanned = warp_scan(own);
  if (lane == kWarpSize - 1) shared.of[warp] = scanned;
  __syncthreads();
  const T warps = warp_scan(lane < kWarps ? shared.of[lane] : T(0));
  const T in_front = warp_broadcast(warps, warp > 0 ? warp - 1 : 0);
  const T at = before + (warp > 0 ? in_front : T(0)) + scanned - own;
  before += warp_broadcast(warps, kWarps - 1);
  __syncthreads();
  return at;
}

}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#pragma once
// One block, 32 columns of one sequence: its warps share the steps, so threads / 32 times as many
// reads are in flight for an output, and the partial sums meet in shared memory in a fixed order.
#include "tensorcraft/device/compensated_sum.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/masked_mean/params.h"

namespace tensorcraft::kernel::masked_mean {

template <int warps>
struct PartialSums {
  float sums[warps][kLanes];
};

struct Block {
  template <class T, class Length, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int warps = C.threads / kLanes;
    auto& partial = static_shared<PartialSums<warps>>();
    const int lane = int(threadIdx.x) % kLanes, warp = int(threadIdx.x) / kLanes;
    const auto tiles = uint32_t(div_ceil(p.cols, kLanes));  // there are fewer than blocks
    const int64_t b = blockIdx.x / tiles, col = int64_t(blockIdx.x % tiles) * kLanes + lane;
    const int64_t n = valid_steps<Length>(p, b);

    CompensatedSum own;
    if (col < p.cols) {
      const T* x = static_cast<const T*>(p.x) + b * p.x_strides[0] + col * p.x_strides[2];
      for (int64_t s = warp; s < n; s += warps) own.add(float(x[s * p.x_strides[1]]));
    }
    float sum = partial.sums[warp][lane] = own.value();
    __syncthreads();

    if (warp > 0 || col >= p.cols) return;
    for (int w = 1; w < warps; ++w) sum += partial.sums[w][lane];
    static_cast<T*>(p.out)[b * p.out_strides[0] + col * p.out_strides[1]] =
        T(n > 0 ? sum / float(n) : 0.0f);
  }
};

}  // namespace tensorcraft::kernel::masked_mean

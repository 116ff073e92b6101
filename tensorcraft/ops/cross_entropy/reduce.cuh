// SPDX-License-Identifier: Apache-2.0
#pragma once
// The second step of a sum or mean: one block adds the losses of all rows, always in one order,
// and counts those that are not -0, which marks a row that was ignored (a loss is never negative).
// It may start while the losses are still computed, which hides its launch.
#include "tensorcraft/device/compensated_sum.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/cross_entropy/params.h"

namespace tensorcraft::kernel::cross_entropy {

// The losses that count, and how many they are.
struct LossSum {
  float sum;
  int count;
  TC_DEVICE LossSum over_warp() const { return {warp_sum(sum), warp_sum(count)}; }
};

struct ReduceShared {
  LossSum parts[kMaxWarps];
};

struct Reduce {
  template <ReduceConfig C>
  TC_DEVICE static void run(const ReduceParams& p) {
    CompensatedSum sum;
    int count = 0;
    const auto add = [&](float loss) {
      sum.add(loss);
      count += bit_cast<uint32_t>(loss) != 0x80000000u;
    };
    const int64_t whole = p.rows / 4 * 4;
#pragma unroll 4  // accesses in flight
    for (int64_t i = int64_t(threadIdx.x) * 4; i < whole; i += C.threads * 4) {
      const auto losses = load_vector<4>(p.losses + i);
      for (int e = 0; e < 4; ++e) add(losses[e]);
    }
    if (whole + threadIdx.x < p.rows) add(p.losses[whole + threadIdx.x]);
    LossSum all = LossSum{sum.value(), count}.over_warp();
    if constexpr (C.threads > kWarpSize) {
      auto& shared = static_shared<ReduceShared>();
      const int lane = int(threadIdx.x) % kWarpSize, warp = int(threadIdx.x) / kWarpSize;
      if (lane == 0) shared.parts[warp] = all;
      __syncthreads();
      all = (lane < C.threads / kWarpSize ? shared.parts[lane] : LossSum{}).over_warp();
    }
    if (threadIdx.x == 0) *p.out = p.mean ? all.sum / float(all.count) : all.sum;
  }
};

}  // namespace tensorcraft::kernel::cross_entropy

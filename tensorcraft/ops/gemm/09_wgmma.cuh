// SPDX-License-Identifier: Apache-2.0
#pragma once
// wgmma: four warps multiply 64 x 16 by 16 x 256 with one instruction that reads both operands from
// shared memory and runs beside the threads.
//
// mma.sync of a warp's 64 x 64 part reads 2 x 64 x 16 elements for 64 x 64 x 16 products. Here 64 x
// 256 outputs read 64 + 256 lines for 64 x 256, so each byte of shared memory serves
//   (64 x 256 / 320) / (64 x 64 / 128) = 1.6 times as many products,
// no register holds an operand and no instruction loads one. Sums of the step before are still
// being made while a step begins: one group of instructions is always in flight.
// It demands sm_90 and operands as tma does, with at least one element along k.
#include "tensorcraft/ops/gemm/parts/consumer.cuh"

namespace tensorcraft::kernel::gemm {

struct Wgmma {
  static constexpr bool begins_itself = true;
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const WgmmaParams<C>& p) {
    static_assert(C.threads == C.consumers * kWarpgroup && C.stages >= 2 && !C.swap);
    static_assert(sizeof(Ring<T, Out, C>) == ring_shared_bytes(C, sizeof(T)));
    auto& ring = dynamic_shared<Ring<T, Out, C>>();
    const BlockTile tile = block_tile<C>(p);
    const int steps = ring_steps<C>(p);
    ring.start(p, C.consumers);

    Producer<T, Out, C> producer(ring, p, tile);
    const bool produces = threadIdx.x == 0;
    if (produces) {
      for (int step = 0; step < C.stages - 1 && step < steps; ++step) producer.produce(step);
    }
    __syncwarp();
    Consumer<T, Out, C> consumer(ring, p, warpgroup_number());
    consumer.begin(tile, 0, steps);
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      consumer.consume(step == 0);
      // The stage of the step before is free when all warps have come here.
      if (produces && step + C.stages - 1 < steps) producer.produce(step + C.stages - 1);
      __syncwarp();
    }
    consumer.land();
    consumer.finish(tile);
    consumer.finish_stores();
  }
};

}  // namespace tensorcraft::kernel::gemm

// SPDX-License-Identifier: Apache-2.0
#pragma once
// One warpgroup only copies, the others only multiply, and registers go to those who need them.
//
// In wgmma the thread that copies also multiplies, so it waits for the slowest warp before each
// copy, and a step that comes late holds up its warpgroup. A producer of its own runs ahead as far
// as the ring is long. It needs few registers; setmaxnreg gives the rest to the consumers:
//   384 threads x 168 = 128 x 40 + 256 x 232, room for 64 x 256 sums a warpgroup.
// It demands what wgmma does.
#include "tensorcraft/ops/gemm/parts/consumer.cuh"

namespace tensorcraft::kernel::gemm {

struct WarpSpecialized {
  static constexpr bool begins_itself = true;
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const WgmmaParams<C>& p) {
    static_assert(C.threads == (C.consumers + 1) * kWarpgroup && C.stages >= 2 && !C.swap);
    static_assert(sizeof(Ring<T, Out, C>) == ring_shared_bytes(C, sizeof(T)));
    auto& ring = dynamic_shared<Ring<T, Out, C>>();
    const BlockTile tile = block_tile<C>(p);
    const int steps = ring_steps<C>(p), group = warpgroup_number();
    ring.start(p, C.consumers);
    if (group == C.consumers) {
      give_registers<C.consumers>();
      if (threadIdx.x % kWarpgroup == 0) Producer<T, Out, C>(ring, p, tile).produce(tile, 0, steps);
    } else {
      take_registers<C.consumers>();
      Consumer<T, Out, C> consumer(ring, p, group);
      consumer.begin(tile, 0, steps);
      consumer.consume_all(0, steps);
      consumer.finish(tile);
      consumer.finish_stores();
    }
  }
};

}  // namespace tensorcraft::kernel::gemm

// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the copy engine brings tiles of queries, keys and values, and wgmma multiplies them
// from there: 64 queries of a warpgroup with one instruction that runs beside its threads. No
// register holds queries, keys or values, and none loads them:
//   mma.sync, 16 queries a warp:  a key is read from shared memory 64 / 16 = 4 times for 64 queries
//   wgmma, 64 of a warpgroup:     once
// Weights stay in registers as its A operand. P V of a tile is still under way when Q K of the next
// one starts; while one warpgroup weighs its scores, the other's products run.
// Demands: sm_90a, and strides of q, k, v and out that the copy engine takes.
#include "tensorcraft/device/attention/consumer.cuh"
#include "tensorcraft/ops/attention/params.h"

namespace tensorcraft::kernel::attention {

struct Wgmma {
  static constexpr bool begins_itself = true;
  template <class T, Config C>
  TC_DEVICE static void run(const HopperParams& p) {
    static_assert(C.threads == C.consumers * kWarpgroup && C.stages >= 2);
    auto& ring = dynamic_shared<Ring<T, C>>();
    ring.start(p, 4 * C.consumers);
    const Work<C> work(p, int(blockIdx.x));
    Producer<T, C> producer(ring, p);
    const bool produces = threadIdx.x == 0;
    if (produces) {
      producer.load_queries(work);
      for (int i = 0; i < C.stages && i < work.tiles; ++i) {
        producer.load_keys(work, work.tiles - 1 - i);
        producer.load_values(work, work.tiles - 1 - i);
      }
    }
    __syncwarp();

    Consumer<T, C> consumer(ring, p, warpgroup_number());
    consumer.begin();
    if (work.tiles > 0) consumer.open(work);
#pragma unroll 1
    for (int tile = work.tiles - 1; tile >= 0; --tile) {
      const bool is_first = tile == work.tiles - 1;
      consumer.wait_for_keys();
      consumer.multiply_keys();
      consumer.template land_scores<0>();
      consumer.land_out(!is_first);
      // The stages of what has landed are free when all warps have come here.
      if (produces && tile - C.stages + 1 >= 0 && !is_first)
        producer.load_values(work, tile - C.stages + 1);
      if (produces && tile - C.stages >= 0) producer.load_keys(work, tile - C.stages);
      __syncwarp();
      float keep[2];
      consumer.mask(work, tile);
      consumer.weigh(keep);
      consumer.rescale(keep);
      consumer.pack_weights();
      consumer.multiply_values();
    }
    consumer.land_out(work.tiles > 0);
    consumer.finish(work);
    consumer.finish_stores();
  }
};

}  // namespace tensorcraft::kernel::attention

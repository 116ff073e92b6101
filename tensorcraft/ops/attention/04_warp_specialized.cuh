// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: one warpgroup only copies, and products hide the softmax. A consumer starts Q K of
// the next tile before P V of this one, and weighs the next scores while P V runs. Consumers start
// their products in turns, so that one weighs while the other's run:
//   clocks a tile, one after another:  products + weights
//   here:                              the larger of both
// The producer needs few registers; setmaxnreg hands the others on, for scores, weights and output
// at once: N / 2 + N / 4 + head_dim / 2 a thread.
// Demands what wgmma does.
#include "tensorcraft/device/attention/schedule.cuh"
#include "tensorcraft/ops/attention/params.h"

namespace tensorcraft::kernel::attention {

struct WarpSpecialized {
  static constexpr bool begins_itself = true;
  template <class T, Config C>
  TC_DEVICE static void run(const HopperParams& p) {
    static_assert(C.threads == (C.consumers + 1) * kWarpgroup);
    auto& ring = dynamic_shared<Ring<T, C>>();
    ring.start(p, 4 * C.consumers);
    const int group = warpgroup_number();
    const Work<C> work(p, int(blockIdx.x));
    if (group == C.consumers) {
      give_registers<C.consumers>();
      Producer<T, C> producer(ring, p);
      if (threadIdx.x % kWarpgroup == 0) produce<T, C>(producer, work);
    } else {
      take_registers<C.consumers>();
      Consumer<T, C> consumer(ring, p, group);
      Starts<C>::begin(group);
      consumer.begin();
      consume(consumer, work);
      Starts<C>::end(group);
      consumer.finish(work);
      consumer.finish_stores();
    }
  }
};

}  // namespace tensorcraft::kernel::attention

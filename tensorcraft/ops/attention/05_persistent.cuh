// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: as many blocks as multiprocessors stay and take work after work. The producer goes
// on to the next queries while consumers finish, and the copy engine stores an output while they
// multiply, so starting, filling the rings and storing cost time once a block:
//   a block a work:  works x (start + first copies + tiles + store)
//   persistent:      start + first copies + works x tiles
// Under a causal limit works shrink from the first to the last. Blocks take them in turns that go
// back and forth, so that each has as many long and short ones; query heads of one key head follow
// each other and find its keys in L2.
// Demands what wgmma does.
#include "tensorcraft/ops/attention/04_warp_specialized.cuh"

namespace tensorcraft::kernel::attention {

// The works of a block: of each gridDim.x one, from the front and from the back by turns.
template <Config C>
struct Walk {
  uint32_t number, all, round = 0;

  TC_DEVICE explicit Walk(const Params& p)
      : number(blockIdx.x), all(uint32_t(p.batch * p.heads * div_ceil(p.seq_q, C.block_m))) {}

  TC_DEVICE bool is_done() const { return number >= all; }
  TC_DEVICE void advance() {
    ++round;
    number = round * gridDim.x + (round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
  }
};

struct Persistent {
  static constexpr bool begins_itself = true;
  template <class T, Config C>
  TC_DEVICE static void run(const HopperParams& p) {
    static_assert(C.threads == (C.consumers + 1) * kWarpgroup);
    auto& ring = dynamic_shared<Ring<T, C>>();
    ring.start(p, 4 * C.consumers);
    const int group = warpgroup_number();
    Walk<C> walk(p);
    if (group == C.consumers) {
      give_registers<C>();
      Producer<T, C> producer(ring, p);
      if (threadIdx.x % kWarpgroup == 0)
        for (; !walk.is_done(); walk.advance()) produce(producer, Work<C>(p, int(walk.number)));
    } else {
      take_registers<C>();
      Consumer<T, C> consumer(ring, p, group);
      Turns<C>::begin(group);
      for (; !walk.is_done(); walk.advance()) {
        const Work<C> work(p, int(walk.number));
        consume(consumer, work);
        if constexpr (C.out_tile) consumer.release_queries();
        consumer.finish(work);
        if constexpr (!C.out_tile) {  // the output has left from the memory of the queries
          consumer.finish_stores();
          consumer.release_queries();
        }
      }
      Turns<C>::end(group);
      consumer.finish_stores();
    }
  }
};

}  // namespace tensorcraft::kernel::attention

// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: as many blocks as multiprocessors stay and take work after work. The producer goes
// on to the next queries while consumers finish, and the copy engine stores an output while they
// multiply, so starting, filling the rings and storing cost time once a block:
//   a block a work:  works x (start + first copies + tiles + store)
//   persistent:      start + first copies + works x tiles
// Under a causal limit the work of the last queries is long and that of the first short. Long ones
// come first, and a block that is done takes the next, so at the end only short ones are open.
// A work's requests are looked up once, by the producer, which hands it to the consumers.
// Demands what wgmma does.
#include "tensorcraft/device/ptx/atomic.cuh"
#include "tensorcraft/ops/attention/04_warp_specialized.cuh"

namespace tensorcraft::kernel::attention {

struct Persistent {
  static constexpr bool begins_itself = true;
  template <class T, Config C>
  TC_DEVICE static void run(const HopperParams& p) {
    static_assert(C.threads == (C.consumers + 1) * kWarpgroup);
    auto& ring = dynamic_shared<Ring<T, C>>();
    ring.start(p, 4 * C.consumers);
    const int group = warpgroup_number();
    if (group == C.consumers) {
      give_registers<C.consumers>();
      if (threadIdx.x % kWarpgroup == 0) produce_all<T, C>(ring, p);
    } else {
      take_registers<C.consumers>();
      Consumer<T, C> consumer(ring, p, group);
      Starts<C>::begin(group);
      for (int number = consumer.begin(); number != kNoWork; number = consumer.begin()) {
        const Work<C> work = consumer.work(number);
        consume(consumer, work);
        consumer.finish(work);
        if constexpr (!C.out_tile) {  // the output has left from the memory of the queries
          consumer.finish_stores();
          consumer.release_queries();
        }
      }
      Starts<C>::end(group);
      consumer.finish_stores();
    }
  }

 private:
  // Each block has its first work from the start. Each work claims one more, so there are as many
  // claims as works, and the last one leaves 0.
  template <class T, Config C>
  TC_DEVICE static void produce_all(Ring<T, C>& ring, const HopperParams& p) {
    Producer<T, C> producer(ring, p);
    const uint32_t works = uint32_t(p.batch * p.heads * query_tiles(p, C.block_m));
    for (uint32_t number = blockIdx.x; number < works;) {
      const uint32_t claimed = ptx::atom_inc_u32(p.taken, works - 1);
      const Work<C> work(p, int(number));
      if (work.rows > 0) produce(producer, work);
      number = gridDim.x + claimed;
    }
    producer.finish();
  }
};

}  // namespace tensorcraft::kernel::attention

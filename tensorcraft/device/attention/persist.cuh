// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/attention/column_consumer.cuh"
#include "tensorcraft/device/attention/schedule.cuh"

namespace tensorcraft::kernel::attention_tiles {

// Each block has its first work from the start. Each work claims one more, so there are as many
// claims as works, and the last one leaves 0.
template <class T, Config C, class Producer>
TC_DEVICE void produce_all(Producer& producer, const HopperParams& p) {
  const int runs = C.parts == kWritten ? runs_of_parts(p) : 1;
  const uint32_t works =
      uint32_t(p.batch * (p.heads / packed_heads(C)) * query_tiles(p, queries_of(C)) * runs);
  for (uint32_t number = blockIdx.x; number < works;) {
    producer.claim(works);
    const Work<C> work(p, int(number));
    // Nobody reads parts without keys.
    if (work.rows > 0 && (C.parts != kWritten || work.tiles > 0)) produce<T, C>(producer, work);
    number = gridDim.x + producer.claimed();
  }
  producer.finish();
}

// A consumer works until there is nothing more to do.
template <Config C, class Consumer>
TC_DEVICE void consume_all(Consumer& consumer) {
  Starts<C>::begin(consumer.group);
  for (int number = consumer.begin(); number != kNoWork; number = consumer.begin()) {
    const Work<C> work = consumer.work(number);
    consume(consumer, work);
    if constexpr (C.parts != kWritten) consumer.finish(work);
    if constexpr (!frees_queries_early(C)) {  // the output leaves from the memory of the queries
      consumer.finish_stores();
      consumer.release_queries();
    }
  }
  Starts<C>::end(consumer.group);
  consumer.finish_stores();
}

// Blocks that stay. `make_producer`: of what brings queries, keys and values, for each warpgroup of
// the block that copies.
template <class T, Config C, class MakeProducer>
TC_DEVICE void persist(const HopperParams& p, const MakeProducer& make_producer, int writers = 1) {
  constexpr int producers = C.threads / kWarpgroup - C.consumers;
  static_assert(producers == 1 || producers == 2);
  auto& ring = dynamic_shared<Ring<T, C>>();
  ring.start(p, 4 * C.consumers, writers);
  const int group = warpgroup_number();
  if (group >= C.consumers) {
    give_registers<C.consumers, producers>();
    auto producer = make_producer(ring, group - C.consumers);
    if (threadIdx.x % kWarpgroup < producer.threads) produce_all<T, C>(producer, p);
  } else {
    take_registers<C.consumers, producers>();
    if constexpr (values_are_keys(C)) {
      if (group > 0) {
        ColumnConsumer<T, C> consumer(ring, p, group);
        return consume_all<C>(consumer);
      }
    }
    Consumer<T, C> consumer(ring, p, group);
    consume_all<C>(consumer);
  }
}

}  // namespace tensorcraft::kernel::attention_tiles

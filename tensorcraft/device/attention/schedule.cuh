// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/attention/consumer.cuh"

// How the blocks work whose producer is a warpgroup of its own.
namespace tensorcraft::kernel::attention_tiles {

// Whose turn it is to start products.
template <Config C>
struct Starts {
  using Turns = tensorcraft::Turns<C.consumers>;
  static constexpr bool kTaken = C.takes_turns && C.consumers > 1;
  TC_DEVICE static void begin(int group) {
    if (kTaken && group == C.consumers - 1) Turns::pass(group);
  }
  TC_DEVICE static void wait(int group) {
    if constexpr (kTaken) Turns::wait(group);
  }
  TC_DEVICE static void pass(int group) {
    if constexpr (kTaken) Turns::pass(group);
  }
  // Nobody needs the last one's pass.
  TC_DEVICE static void end(int group) {
    if (kTaken && group == 0) Turns::wait(group);
  }
};

// The producer and each consumer do this for some work. A consumer gives its queries back once the
// last scores are there, if the output does not leave from their memory: the next ones come while
// it weighs and stores.
template <class T, Config C, class Producer>
TC_DEVICE void produce(Producer& producer, const Work<C>& work) {
  producer.load_queries(work);
#pragma unroll 1
  for (int tile = work.tiles - 1; tile >= 0; --tile) {
    producer.load_keys(work, tile);
    if (tile + 1 < work.tiles) producer.load_values(work, tile + 1);
  }
  if (work.tiles > 0) producer.load_values(work, 0);
}
// If values are keys: the other consumers get the weights of the tile that was weighed last.
template <class T, Config C>
TC_DEVICE void share_weights(const Consumer<T, C>& consumer, const float (&keep)[2]) {
  using Weights = typename ValueStages<T, C>::Weights;
  auto& ring = consumer.ring;
  const int stage = (consumer.keys.stage ? consumer.keys.stage : C.stages) - 1;
  auto* const to = reinterpret_cast<unsigned char*>(&ring.v.weights_of(ring.k, stage));
  const int lane = threadIdx.x % kWarpSize, row = threadIdx.x / kWarpSize * 16 + lane % 16;
#pragma unroll
  for (int j = 0; j < C.block_n / 16; ++j) {
    uint32_t words[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float* s = consumer.score.at[0][0] + 8 * j + 2 * e;
      words[e] = pack_pair(s[0], s[1], T{});
    }
    ptx::stmatrix_x4(to + Weights::place(row, 2 * j + lane / 16), words);
  }
  consumer.share(ring.v.keep[stage], keep);
  ptx::fence_proxy_async();
  consumer.release(&ring.values.full[stage]);
}
// It makes weights alone then.
template <class T, Config C>
TC_DEVICE void make_weights(Consumer<T, C>& consumer, const Work<C>& work) {
  float keep[2];
#pragma unroll 1
  for (int tile = work.tiles - 1; tile >= 0; --tile) {
    const bool is_first = tile == work.tiles - 1;
    consumer.wait_for_keys();
    if (is_first) consumer.open(work);
    consumer.multiply_keys();
    consumer.template land_scores<0>();
    consumer.meet();  // other warps' products are done too: weights lie in place of keys
    if (frees_queries_early(C) && tile == 0) consumer.release_queries();
    consumer.mask(work, tile);
    if (!is_first && consumer.begins_part(tile)) consumer.end_rows(work);
    consumer.weigh(keep);
    share_weights(consumer, keep);
  }
  consumer.end_parts(work);
}
template <class T, Config C>
TC_DEVICE void consume(Consumer<T, C>& consumer, const Work<C>& work) {
  if (work.tiles == 0) {
    if constexpr (frees_queries_early(C)) consumer.release_queries();
    return;
  }
  if constexpr (values_are_keys(C)) return make_weights(consumer, work);
  float keep[2];
  consumer.wait_for_keys();
  consumer.multiply_keys();
  consumer.open(work);
  consumer.template land_scores<0>();
  if (frees_queries_early(C) && work.tiles == 1) consumer.release_queries();
  consumer.mask(work, work.tiles - 1);
  consumer.weigh(keep);
  consumer.pack_weights();
  if (work.tiles > 1) consumer.wait_for_keys();
  bool adds = true;
#pragma unroll 1
  for (int tile = work.tiles - 2; tile >= 0; --tile) {
    Starts<C>::wait(consumer.group);
    consumer.multiply_keys();
    consumer.multiply_values(adds);
    Starts<C>::pass(consumer.group);
    consumer.template land_scores<1>();
    if (frees_queries_early(C) && tile == 0) consumer.release_queries();
    consumer.mask(work, tile);
    const bool begins_part = consumer.begins_part(tile);
    if (begins_part) consumer.end_rows(work);
    consumer.weigh(keep);
    // The compiler leaves the exponentials in front of this loop, and so in front of the wait for
    // P V, which they would not cover else.
    if (tile > 0) consumer.wait_for_keys();
    consumer.land_out();
    if (begins_part)
      consumer.end_values(work);
    else
      consumer.rescale(keep);
    adds = !begins_part;
    consumer.pack_weights();
  }
  consumer.multiply_values(adds);
  consumer.land_out();
  consumer.end_parts(work);
}

}  // namespace tensorcraft::kernel::attention_tiles

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/attention/consumer_rows.cuh"
#include "tensorcraft/device/attention/part_sums.cuh"

namespace tensorcraft::kernel::attention_tiles {

// One of the two warpgroups beside a Consumer if values are keys: it multiplies the weights that
// the Consumer shares by half of the columns of the values.
template <class T, Config C>
struct ColumnConsumer : ConsumerRows<T, C> {
  using Rows = ConsumerRows<T, C>;
  using Rows::ring, Rows::p, Rows::group, Rows::release;
  StageCursor<C.stages> tiles;
  uint32_t work_parity = 0;
  WeightedSums<T, C> out;
  PartSums<C> parts;

  TC_DEVICE ColumnConsumer(Ring<T, C>& memory, const HopperParams& params, int number)
      : Rows{memory, params, number} {}

  TC_DEVICE int begin() {
    out.clear();
    ptx::mbarrier_wait_parity(&ring.q_full, work_parity);
    return __shfl_sync(kFullWarp, ring.work.number, 0);
  }
  // A part ends in front of a tile, as the Consumer's do.
  TC_DEVICE void multiply_tile(const Work<C>& w, int tile) {
    const int stage = tiles.stage;
    ptx::mbarrier_wait_parity(&ring.values.full[stage], tiles.parity);
    bool adds = tile + 1 < w.tiles;
    if constexpr (C.parts > 0) {
      if (adds && parts.begins_part(tile)) {
        end_part(w);
        adds = false;
      }
    }
    if (adds) out.rescale(of_rows(ring.v.keep[stage]).at);
    out.multiply(ring.v.weights_of(ring.k, stage), ring.values_of(stage), this->first_column(),
                 adds);
    out.land(ring.values_of(stage), true);
    release(&ring.keys.empty[stage]);
    tiles.advance();
  }
  TC_DEVICE void end_part(const Work<C>& w) {
    if constexpr (C.parts == kWritten) this->store_values(w, parts.part--, out);
    if constexpr (C.parts == kFolded) {
      take_factors(0);
      parts.add_sums(out);
    }
  }
  TC_DEVICE void finish(const Work<C>& w) {
    ptx::mbarrier_wait_parity(&ring.v.inverse_full, work_parity ^ 1);
    if constexpr (C.parts == kFolded) {
      if (w.tiles > 0) {
        take_factors(1);
        parts.add_sums(out, [&](int c, float x) { out.set(c, x); });
      }
    }
    this->store_rows(w, out, of_rows(ring.v.inverse).at);
  }

 private:
  template <class X>
  struct OfRows {
    X at[2];
  };
  // This thread's two rows.
  template <class X>
  TC_DEVICE static OfRows<X> of_rows(const X (&of_all)[C.block_m]) {
    return {{of_all[sums_row<false>(0)], of_all[sums_row<false>(1)]}};
  }
  TC_DEVICE void take_factors(bool ends_work) {
    const auto factors = of_rows(ring.v.factors[ends_work]);
    for (int half = 0; half < 2; ++half) parts.factors[half] = factors.at[half];
  }
};

// Goes through the tiles of some work.
template <class T, Config C>
TC_DEVICE void consume(ColumnConsumer<T, C>& consumer, const Work<C>& work) {
  consumer.work_parity ^= 1;
  if constexpr (frees_queries_early(C)) consumer.release_queries();
  if (work.tiles == 0) return;
  if constexpr (C.parts > 0) consumer.parts.begin(consumer.ring, consumer.p, work);
#pragma unroll 1
  for (int tile = work.tiles - 1; tile >= 0; --tile) consumer.multiply_tile(work, tile);
  if constexpr (C.parts == kWritten) consumer.end_part(work);
}

}  // namespace tensorcraft::kernel::attention_tiles

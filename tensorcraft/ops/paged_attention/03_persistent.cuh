// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: queries of a request that are many are multiplied by wgmma, 128 rows of a block at
// once, which is attention's rung `persistent` with another producer: the copy engine brings the
// keys of a tile block of the cache by block, one box each. Queries of the heads that share keys
// lie side by side in memory, so one box brings them as rows:
//   packed:  a key is read once for 16 to 64 rows, and multiplied for 16 of them at a time
//   here:    once for 128, and multiplied for 64 at a time while others are weighed
// Under a causal limit the rows of a tile stand at few places, so few products are hidden.
// Demands: sm_90a, a cache of 16-bit elements in blocks of 16 keys or a multiple.
#include "tensorcraft/device/attention/persist.cuh"
#include "tensorcraft/ops/paged_attention/params.h"
#include "tensorcraft/ops/paged_attention/pages.cuh"

namespace tensorcraft::kernel::paged_attention {

// Brings tiles of keys and values whose rows lie in blocks of the cache: a lane of a warp looks up
// a block and starts one box of its rows. Blocks that no query of the tile sees are looked up
// nowhere: their rows are zeros, and so are those of a block that the cache lacks.
template <class T, Config C>
struct PageProducer : attention_tiles::Producer<T, tile_config(C)> {
  using Producer = attention_tiles::Producer<T, tile_config(C)>;
  using Work = attention_tiles::Work<tile_config(C)>;
  static constexpr int threads = kWarpgroup, kWarps = threads / kWarpSize;
  static constexpr int kBoxes = C.block_n / C.box_rows;
  static_assert(C.block_n % C.box_rows == 0 && C.box_rows % 8 == 0);
  const Params& pages;
  int thread = int(threadIdx.x) % threads;

  TC_DEVICE PageProducer(attention_tiles::Ring<T, tile_config(C)>& ring, const HopperParams& p)
      : Producer(ring, p.attention), pages(p.pages) {}

  TC_DEVICE uint32_t claim(uint32_t works) const {
    meet();
    if (thread == 0) this->ring.claimed = Producer::claim(works);
    meet();
    return this->ring.claimed;
  }
  TC_DEVICE void load_queries(const Work& w) {
    if (w.request >= 0) length_of(pages, w.request);  // so that the emulator refuses a wrong one
    if (thread == 0) Producer::load_queries(w);
    meet();
  }
  TC_DEVICE void finish() {
    if (thread == 0) Producer::finish();
  }
  TC_DEVICE void load_keys(const Work&, int tile) {
    const int stage = this->keys.stage;
    load(this->ring.k[stage], &this->p.k_map, tile, &this->ring.k_empty[stage], this->keys.parity,
         &this->ring.k_full[stage]);
    this->keys.advance();
  }
  TC_DEVICE void load_values(const Work&, int tile) {
    const int stage = this->values.stage;
    load(this->ring.v[stage], &this->p.v_map, tile, &this->ring.v_empty[stage], this->values.parity,
         &this->ring.v_full[stage]);
    this->values.advance();
  }

 private:
  static constexpr int kProducers = kTurns + 3;  // the barrier after those of consumers
  TC_DEVICE static void meet() { ptx::bar_sync(kProducers, threads); }
  // The block of the cache that has these keys of a request, or -1 if no query sees one of them.
  TC_DEVICE int block_of(const Work& w, int key) const {
    const int begin = w.first_key + w.seen(0).begin, end = w.first_key + w.end();
    if (key >= end || key + C.box_rows <= begin) return -1;
    return int(Pages(pages, w.request, 0).block_of(key));
  }
  // Blocks are looked up before there is room.
  template <class Tile>
  TC_DEVICE void load(Tile& to, const TensorMap* map, int tile, uint64_t* empty, uint32_t parity,
                      uint64_t* full) const {
    constexpr int lines = Producer::template boxes_of<Tile>;
    const Work& w = this->ring.work;  // registers have gone to the consumers
    static_assert(kBoxes * lines <= threads);
    const int copy = thread % kWarpSize * kWarps + thread / kWarpSize;
    const int box = copy % kBoxes, line = copy / kBoxes;
    const int key = w.first_key + tile * C.block_n + box * C.box_rows;
    const int32_t at[4] = {line * Producer::kOfBox, key % pages.block_size, w.head / pages.group,
                           line < lines ? block_of(w, key) : -1};
    ptx::mbarrier_wait_parity(empty, parity);
    if (thread == 0) ptx::mbarrier_arrive_expect_tx(full, sizeof(Tile));
    __syncwarp();
    if (line < lines)
      ptx::tma_load(
          to.at + line * Producer::template units_of<Tile> + box * C.box_rows * kBoxChunks, map, at,
          full);
  }
};

struct Persistent {
  static constexpr bool begins_itself = true;
  template <class T, class Code, Config C>
  TC_DEVICE static void run(const HopperParams& p) {
    using Ring = attention_tiles::Ring<T, tile_config(C)>;
    attention_tiles::persist<T, tile_config(C)>(
        p.attention, [&](Ring& ring) { return PageProducer<T, C>(ring, p); });
  }
};

}  // namespace tensorcraft::kernel::paged_attention

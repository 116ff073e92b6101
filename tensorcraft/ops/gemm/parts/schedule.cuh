// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/parts/consumer.cuh"

// The schedule of the rungs whose blocks stay: which tiles a block takes, and who multiplies when.
namespace tensorcraft::kernel::gemm {

// From the tile of a cluster to the block's own.
template <Config C>
TC_DEVICE void add_rank(BlockTile& tile) {
  using Cluster = RingCluster<C>;
  const int rank = blockIdx.x % Cluster::blocks;
  tile.row += rank % Cluster::m * C.block_m;
  tile.col += rank / Cluster::m * tile_columns(C);
}

// The tiles of a cluster, in their order.
template <Config C>
struct TileWalk {
  using Cluster = RingCluster<C>;
  TileOrder<C.block_m * C.cluster_m, tile_columns(C) * C.cluster_n> order;
  uint32_t number, end, step;

  TC_DEVICE explicit TileWalk(const Params& p)
      : order(rows_of<C>(p), cols_of<C>(p)),
        number(blockIdx.x / Cluster::blocks),
        end(order.rows * order.cols * batch_count(p)),
        step(gridDim.x / Cluster::blocks) {}

  TC_DEVICE void begin() {}
  TC_DEVICE bool is_done() const { return number >= end; }
  TC_DEVICE bool has_next() const { return end - number > step; }
  TC_DEVICE void advance() { number += step; }
  // The block's own tile.
  TC_DEVICE BlockTile tile() const {
    BlockTile t = order.at(number);
    add_rank<C>(t);
    return t;
  }
};

// Serves groups of rows, by all lanes of a warp.
template <Config C>
struct GroupedTileWalk {
  using Cluster = RingCluster<C>;
  GroupedTiles<C.block_m * C.cluster_m, tile_columns(C) * C.cluster_n, C.swap != 0> tiles;
  GroupTile found;
  uint32_t number, step;

  TC_DEVICE explicit GroupedTileWalk(const GroupedParams& p)
      : tiles(p), number(blockIdx.x / Cluster::blocks), step(gridDim.x / Cluster::blocks) {}

  // When the kernels before this one have written the groups.
  TC_DEVICE void begin() { found = tiles.find(number); }
  TC_DEVICE bool is_done() const { return found.is_none(); }
  TC_DEVICE bool has_next() const {
    GroupedTileWalk next = *this;
    next.advance();
    return !next.is_done();
  }
  TC_DEVICE void advance() {
    number += step;
    begin();
  }
  TC_DEVICE GroupTile tile() const {
    GroupTile t = found;
    add_rank<C>(t);
    return t;
  }
};

// The threads of the warpgroup that copies, of which the first does: they walk.
template <Config C>
inline constexpr int kWalkers = C.has_groups ? 32 : 1;

template <Config C>
using WalkOf = Select<C.has_groups != 0, GroupedTileWalk<C>, TileWalk<C>>;

// Two consumers: one multiplies while the other finishes its tile.
template <class OneConsumer, class AnyWalk>
TC_DEVICE void take_turns(OneConsumer& consumer, AnyWalk& walk, int steps) {
  const int group = consumer.group;
  if (group == 1) {
    if (!walk.is_done()) Turns<2>::pass(group);  // consumer 0 goes first
    walk.advance();
    consumer.read.advance(uint32_t(steps));
  }
  while (!walk.is_done()) {
    const auto tile = walk.tile();
    consumer.begin(tile, 0, steps);
    Turns<2>::wait(group);
    consumer.consume_all(0, steps);
    if (walk.has_next()) Turns<2>::pass(group);
    consumer.finish(tile);
    walk.advance();
    walk.advance();
    consumer.read.advance(uint32_t(steps));  // those of the other
  }
}

// Consumers of one tile.
template <class OneConsumer, class AnyWalk>
TC_DEVICE void work_together(OneConsumer& consumer, AnyWalk& walk, int steps) {
  if (!walk.is_done()) consumer.begin(walk.tile(), 0, steps);
  while (!walk.is_done()) {
    const auto tile = walk.tile();
    consumer.consume_all(0, steps);
    walk.advance();
    if (!walk.is_done()) consumer.begin(walk.tile(), 0, steps);
    consumer.finish(tile);
  }
}

// Blocks that take tile after tile.
template <class T, class Out, Config C>
TC_DEVICE void run_tiles(const WgmmaParams<C>& p) {
  using OneConsumer = Consumer<T, Out, C>;
  constexpr bool takes_turns = OneConsumer::takes_turns;
  static_assert(C.threads == (C.consumers + 1) * kWarpgroup && C.stages >= 2);
  static_assert(sizeof(Ring<T, Out, C>) == ring_shared_bytes(C, sizeof(T)));
  static_assert(!takes_turns || C.consumers == 2);
  auto& ring = dynamic_shared<Ring<T, Out, C>>();
  WalkOf<C> walk(p);
  const int steps = ring_steps<C>(p), group = warpgroup_number();
  ring.start(p, takes_turns ? 1 : C.consumers);
  walk.begin();
  if (group == C.consumers) {
    give_registers<C.consumers>();
    if (threadIdx.x % kWarpgroup < kWalkers<C>) {
      Producer<T, Out, C> producer(ring, p, {});
      for (; !walk.is_done(); walk.advance())
        if (threadIdx.x % kWarpgroup == 0) producer.produce(walk.tile(), 0, steps);
    }
    __syncwarp();
  } else {
    take_registers<C.consumers>();
    OneConsumer consumer(ring, p, group);
    if constexpr (takes_turns)
      take_turns(consumer, walk, steps);
    else
      work_together(consumer, walk, steps);
    consumer.finish_stores();
  }
  // A block stays until no other brings operands to it or arrives at its barriers.
  if constexpr (RingCluster<C>::blocks > 1) ptx::cluster_sync();
}

}  // namespace tensorcraft::kernel::gemm

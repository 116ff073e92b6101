// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/tile/block_tile.cuh"
#include "tensorcraft/device/tile/boxed_tile.cuh"
#include "tensorcraft/device/tile/operand_tiles.cuh"

namespace tensorcraft {

// An operand for the copy engine: its map, and its batch stride: 0 if all entries share one matrix.
struct BoxedOperand {
  const TensorMap* map;
  int64_t batch_stride;
};

// What one thread of a block starts for one stage, OperandTiles of BoxedTile: the block's part of A
// for every block of the cluster, and its own B. The blocks of a cluster are neighbours in x.
// kHalves: B's tile is as many columns from the tile's on as from `half_jump` columns later on.
template <class Stage, int kCluster, bool kHalves = false>
struct BoxedProducer {
  using T = typename Stage::Element;
  static constexpr StepShape shape = Stage::shape;
  static constexpr int rows = shape.m / kCluster;
  static_assert(shape.k == kBoxChunks * kVectorSize<T>, "a step along k is one line");

  const TensorMap *a_map, *b_map;
  int row, col, jump, a_batch, b_batch, rank;

  TC_DEVICE BoxedProducer(const BoxedOperand& a, const BoxedOperand& b, const BlockTile& tile,
                          int half_jump = 0)
      : a_map(a.map),
        b_map(b.map),
        col(int(tile.col)),
        jump(half_jump),
        rank(blockIdx.x % kCluster) {
    row = int(tile.row) + rank * rows;
    a_batch = a.batch_stride ? int(tile.batch) : 0;
    b_batch = b.batch_stride ? int(tile.batch) : 0;
  }

  // Starts the copies of the step at k; `full` counts their bytes.
  TC_DEVICE void copy(Stage& to, uint64_t* full, int k) const {
    // The other blocks' parts count too, even if they come before this.
    ptx::mbarrier_arrive_expect_tx(full, sizeof(to));
    copy_boxes<T, shape.a_along_k, kCluster, rows, shape.a_along_k ? rows : shape.k>(
        to.a.at + rank * (rows * kBoxChunks), a_map, row, k, a_batch, full);
    constexpr int halves = kHalves ? 2 : 1, cols = shape.n / halves;
#pragma unroll
    for (int half = 0; half < halves; ++half) {
      copy_boxes<T, shape.b_along_k, 1, cols, shape.b_along_k ? cols : shape.k>(
          to.b.at + half * (cols * shape.k / kVectorSize<T>), b_map, col + half * jump, k, b_batch,
          full);
    }
  }
};

}  // namespace tensorcraft

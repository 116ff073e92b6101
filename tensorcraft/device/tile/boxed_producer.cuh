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

// The tiles that blocks of a cluster share: kM x kN blocks have neighbouring tiles, numbered along
// m first. Those of one row of tiles read the same A, those of one column the same B.
template <int kM, int kN>
struct ClusterShape {
  static constexpr int m = kM, n = kN, blocks = kM * kN;
};

// The copies that one thread of a block starts for one stage, OperandTiles of BoxedTile: the
// block's part of A for the blocks of its row of tiles, and its part of B for those of its column.
// If kGated, half of B's columns begin `up` columns behind the others.
template <class Stage, class Cluster, bool kGated = false>
struct BoxedProducer {
  using T = typename Stage::Element;
  static constexpr StepShape shape = Stage::shape;
  static constexpr int rows = shape.m / Cluster::n, cols = shape.n / Cluster::m;
  static constexpr int piece = kGated && cols == shape.n ? cols / 2 : cols;
  static_assert(shape.k == kBoxChunks * kVectorSize<T>, "a step along k is one line");

  const TensorMap *a_map, *b_map;
  int row, col, up, a_batch, b_batch, rank_m, rank_n;

  TC_DEVICE BoxedProducer(const BoxedOperand& a, const BoxedOperand& b, const BlockTile& tile,
                          int up_columns = 0)
      : a_map(a.map), b_map(b.map), col(int(tile.col)), up(up_columns) {
    const int rank = blockIdx.x % Cluster::blocks;
    rank_m = rank % Cluster::m;
    rank_n = rank / Cluster::m;
    row = int(tile.row) + rank_n * rows;
    a_batch = a.batch_stride ? int(tile.batch) : 0;
    b_batch = b.batch_stride ? int(tile.batch) : 0;
  }

  // Starts the copies of the step at k; `full` counts their bytes.
  TC_DEVICE void copy(Stage& to, uint64_t* full, int k) const { copy(to, full, k, k); }
  // Copies from different places of A and of B.
  TC_DEVICE void copy(Stage& to, uint64_t* full, int a_k, int b_k) const {
    // The other blocks' parts count too, even if they come before this.
    ptx::mbarrier_arrive_expect_tx(full, sizeof(to));
    constexpr uint16_t row_mask = (1 << Cluster::blocks) - 1;
    copy_boxes<T, shape.a_along_k, Cluster::n != 1, rows,
               box_lines(shape.a_along_k, rows, shape.k)>(
        to.a.at + units<shape.a_along_k>(rank_n * rows), a_map, row, a_k, a_batch, full,
        uint16_t(every_m_th(row_mask) << rank_m));
    constexpr uint16_t col_mask = (1 << Cluster::m) - 1;
#pragma unroll
    for (int from = 0; from < cols; from += piece) {
      const int in_tile = rank_m * cols + from;
      const int at =
          kGated && in_tile >= shape.n / 2 ? up + col + in_tile - shape.n / 2 : col + in_tile;
      copy_boxes<T, shape.b_along_k, Cluster::m != 1, piece,
                 box_lines(shape.b_along_k, piece, shape.k)>(
          to.b.at + units<shape.b_along_k>(in_tile), b_map, at, b_k, b_batch, full,
          uint16_t(col_mask << rank_n * Cluster::m));
    }
  }

 private:
  // 16-byte units before row or column i of a tile.
  template <bool kAlongK>
  TC_DEVICE static int units(int i) {
    return kAlongK ? i * kBoxChunks : i / (kBoxChunks * kVectorSize<T>)*shape.k * kBoxChunks;
  }
  TC_HOST_DEVICE static constexpr unsigned every_m_th(unsigned mask) {
    unsigned every = 0;
    for (int i = 0; i < Cluster::blocks; i += Cluster::m) every |= 1u << i;
    return mask & every;
  }
};

}  // namespace tensorcraft

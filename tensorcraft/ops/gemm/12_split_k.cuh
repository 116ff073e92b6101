// SPDX-License-Identifier: Apache-2.0
#pragma once
// The blocks of a cluster share one tile: each multiplies a part of k, and the sums meet in shared
// memory.
//
// A result of few tiles leaves multiprocessors idle, and few rows make a product that only reads
// the weights, which takes every multiprocessor's share of the bandwidth. With s blocks a tile
//   time = (steps / s) x a step + sums / (bandwidth between multiprocessors),
// where the sums, 4 bytes an output, stay inside the cluster. Each block adds the parts of its rows
// in the order of k, so results repeat to the bit, and no workspace in global memory is needed.
// It demands what wgmma does.
#include "tensorcraft/ops/gemm/parts/consumer.cuh"

namespace tensorcraft::kernel::gemm {

// Where a block's sums wait for the others; 8 more floats a row keep writes of wgmma's layout free
// of conflicts. The stages are not needed any more then.
template <Config C>
struct PartialSums {
  Vec4<float> at[C.block_m][C.block_n / 4 + 2];
};

struct SplitK {
  static constexpr bool begins_itself = true;

  template <class T, class Out, Config C>
  TC_DEVICE static void run(const WgmmaParams<C>& p) {
    static_assert(C.threads == (C.consumers + 1) * kWarpgroup && C.stages >= 2);
    static_assert(sizeof(Ring<T, Out, C>) == ring_shared_bytes(C, sizeof(T)));
    static_assert(sizeof(PartialSums<C>) <= sizeof(Ring<T, Out, C>::stages));
    static_assert(C.block_m % C.split == 0 && C.cluster_m * C.cluster_n == 1 && !C.gated);
    auto& ring = dynamic_shared<Ring<T, Out, C>>();
    const int part = int(blockIdx.x % C.split), group = warpgroup_number();
    const BlockTile tile =
        TileOrder<C.block_m, C.block_n>(rows_of<C>(p), cols_of<C>(p)).at(blockIdx.x / C.split);
    const int64_t steps = ring_steps<C>(p);
    const int first = int(steps * part / C.split), end = int(steps * (part + 1) / C.split);
    ring.start(p, C.consumers);
    if (group == C.consumers) {
      if (threadIdx.x % kWarpgroup == 0)
        Producer<T, Out, C>(ring, p, tile).produce(tile, first, end);
      __syncwarp();
    } else {
      Consumer<T, Out, C> consumer(ring, p, group);
      if (end > first) {
        consumer.begin(tile, first, end);
        consumer.consume_all(first, end);
      } else {
        consumer.sums.clear();
      }
      if constexpr (C.consumers > 1) ptx::bar_sync(kAllConsumers, C.consumers * kWarpgroup);
      write(partial_sums<C>(ring), consumer);
    }
    ptx::cluster_sync();
    add<T>(partial_sums<C>(ring), Epilogue<T, Out, C>(p, tile.batch), tile, part);
    ptx::cluster_sync();  // the others have read this block's sums
  }

 private:
  template <Config C, class R>
  TC_DEVICE static PartialSums<C>& partial_sums(R& ring) {
    return reinterpret_cast<PartialSums<C>&>(ring.stages);
  }

  template <Config C, class OneConsumer>
  TC_DEVICE static void write(PartialSums<C>& to, const OneConsumer& consumer) {
#pragma unroll
    for (int i = 0; i < OneConsumer::rows / kGroupRows; ++i) {
#pragma unroll
      for (int n = 0; n < C.block_n / 8; ++n) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float x[2];
          consumer.sums.pair(x, i, n, half);
          const int row = consumer.first_row + i * kGroupRows + sums_row<false>(half);
          store_vector(&to.at[row][n * 2][0] + threadIdx.x % 4 * 2, Vec2<float>{x[0], x[1]});
        }
      }
    }
  }

  // Adds the parts of this block's rows, and stores them: 4 neighbours of a row of D a thread.
  template <class T, Config C, class E>
  TC_DEVICE static void add(PartialSums<C>& own, const E& epilogue, const BlockTile& tile,
                            int part) {
    constexpr int rows = C.block_m / C.split, fours = rows * C.block_n / 4;
#pragma unroll 1
    for (int i = threadIdx.x; i < fours; i += C.threads) {
      float sum[4];
      if constexpr (C.swap) {
        const int row = part * rows + i % (rows / 4) * 4, col = i / (rows / 4);
        for (int j = 0; j < 4; ++j) sum[j] = 0;
#pragma unroll
        for (int from = 0; from < C.split; ++from) {
          const PartialSums<C>& theirs = *ptx::mapa(&own, uint32_t(from));
#pragma unroll
          for (int j = 0; j < 4; ++j) add_sum<T>(sum[j], theirs.at[row + j][col / 4][col % 4]);
        }
        epilogue.store(sum, tile.col + col, tile.row + row);
      } else {
        const int row = part * rows + i / (C.block_n / 4), four = i % (C.block_n / 4);
        Vec4<float> x[C.split];
#pragma unroll
        for (int from = 0; from < C.split; ++from)
          x[from] = *ptx::mapa(&own.at[row][four], uint32_t(from));
        for (int j = 0; j < 4; ++j) sum[j] = x[0][j];
#pragma unroll
        for (int from = 1; from < C.split; ++from)
          for (int j = 0; j < 4; ++j) add_sum<T>(sum[j], x[from][j]);
        epilogue.store(sum, tile.row + row, tile.col + four * 4);
      }
    }
  }
};

}  // namespace tensorcraft::kernel::gemm

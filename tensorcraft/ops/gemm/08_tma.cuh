// SPDX-License-Identifier: Apache-2.0
#pragma once
// The copy engine brings whole tiles, two blocks of a cluster share their rows of A.
//
// One thread issues a copy that 128 threads of swizzled needed addresses and instructions for, and
// the engine places chunks by its own 128-byte swizzle. Barriers in shared memory count bytes and
// warps, so no step waits for all threads of the block. Each block of the pair fetches half of the
// rows of A for both, so a step of 256 x 256 outputs reads
//   256 + 2 x 128 lines from L2 instead of 2 x (256 + 128): a third less.
// It demands sm_90, 16-bit operands whose lines start at multiples of 16 bytes, and at most one
// batch dimension.
#include "tensorcraft/device/ptx/cluster.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tile/boxed_producer.cuh"
#include "tensorcraft/device/tile/boxed_reader.cuh"
#include "tensorcraft/device/tile/stage_cursor.cuh"
#include "tensorcraft/ops/gemm/parts/stages.cuh"

namespace tensorcraft::kernel::gemm {

template <class T, Config C>
struct alignas(1024) TmaShared {
  using Tiles = StagesOrSlabs<BoxedTile, T, C>;
  using Stage = typename Tiles::Stage;
  Tiles tiles;
  uint64_t full[C.stages];   // the bytes of a stage have come
  uint64_t empty[C.stages];  // no warp of the cluster reads it any more
};

// Fills the ring of stages, by thread 0 of the block.
template <class T, Config C>
struct TmaProducer {
  using Shared = TmaShared<T, C>;

  Shared& shared;
  BoxedProducer<typename Shared::Stage, ClusterShape<1, kTmaCluster>, C.gated != 0> boxes;
  int k_end;
  StageCursor<C.stages> fill{C.stages - 1, 1};

  TC_DEVICE TmaProducer(const TmaParams<C>& p, Shared& memory, const BlockTile& tile)
      : shared(memory),
        boxes({&p.a_map, p.a.batch_strides[0]}, {&p.b_map, p.b.batch_strides[0]}, tile,
              C.gated ? int(p.n) : 0),
        k_end(int(p.k)) {}

  // Makes the barriers, which the whole cluster knows then, and starts the first copies.
  TC_DEVICE void start() const {
    if (threadIdx.x == 0) {
      ptx::prefetch_tensormap(boxes.a_map);
      ptx::prefetch_tensormap(boxes.b_map);
      for (int i = 0; i < C.stages; ++i) {
        ptx::mbarrier_init(&shared.full[i], 1);
        ptx::mbarrier_init(&shared.empty[i], kTmaCluster * C.threads / 32);
      }
      ptx::fence_mbarrier_init();
    }
    ptx::cluster_arrive_relaxed();  // the fence has ordered the barriers
    ptx::cluster_wait();
    if (threadIdx.x == 0) {
      for (int i = 0; i < C.stages - 1; ++i)
        if (i * C.block_k < k_end) copy(i, i * C.block_k);
    }
  }

  // Starts copying the step at k when no warp of the cluster reads its stage any more.
  TC_DEVICE void produce(int k) {
    if (threadIdx.x == 0 && k < k_end) {
      ptx::mbarrier_wait_parity(&shared.empty[fill.stage], fill.parity);
      copy(fill.stage, k);
    }
    fill.advance();
  }

 private:
  TC_DEVICE void copy(int stage, int k) const {
    boxes.copy(shared.tiles.stages[stage], &shared.full[stage], k);
  }
};

// A warp's part of the product, of the stages in turn. Fragments of the next step are on their way
// while this step multiplies.
template <class T, Config C>
struct TmaConsumer {
  using Shared = TmaShared<T, C>;
  using Stage = typename Shared::Stage;
  static constexpr int steps = C.block_k / kMmaDepth<T>;
  static_assert(C.warp_m <= 64 && C.warp_n <= 64, "a warp's part is in one box");
  static_assert(C.stages >= 2 && steps >= 2 && steps % 2 == 0);

  Shared& shared;
  StageCursor<C.stages> read;
  BoxedReader<T, typename Stage::A, Stage::a_along_k, false> a_reader;
  BoxedReader<T, typename Stage::B, Stage::b_along_k, true> b_reader;
  WarpSums<C.warp_m, C.warp_n> sums = {};
  Fragments<C.warp_m, C.warp_n> fragments[2];

  TC_DEVICE TmaConsumer(Shared& memory, int row, int col)
      : shared(memory), a_reader(row), b_reader(col) {}

  TC_DEVICE void load(int step) {
    const auto& from = shared.tiles.stages[read.stage];
    a_reader.load(fragments[step % 2].a, from.a, step);
    // The halves of a gated tile are boxes of their own: as many lines further as one has.
    b_reader.template load<C.gated != 0>(fragments[step % 2].b, from.b, step, b_box_lines(C));
  }
  // Waits for the next stage and loads its first step.
  TC_DEVICE void load_stage() {
    ptx::mbarrier_wait_parity(&shared.full[read.stage], read.parity);
    load(0);
  }
  // Adds the product of a step. After the last step of a stage the warp goes on to the next stage,
  // if there is one.
  TC_DEVICE void consume(int step, bool has_next_stage) {
    if (step + 1 < steps) {
      load(step + 1);
    } else {
      __syncwarp();  // every lane has read the stage
      const int lane = threadIdx.x % 32;
      if (lane < kTmaCluster) ptx::mbarrier_arrive_cluster_read(&shared.empty[read.stage], lane);
      read.advance();
      if (has_next_stage) load_stage();
    }
    sums.template add_product<T>(fragments[step % 2]);
  }
  // No warp of the cluster reads a stage or arrives at a barrier any more, and every copy into this
  // block has been waited for: shared memory may serve another purpose.
  TC_DEVICE static void finish() { ptx::cluster_sync(); }
};

struct Tma {
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const TmaParams<C>& p) {
    using Shared = TmaShared<T, C>;
    constexpr int steps = TmaConsumer<T, C>::steps;
    static_assert(!C.gated || C.block_n == 128, "a half is one box");
    static_assert(sizeof(Shared) == tma_shared_bytes(C, sizeof(T)));
    auto& shared = dynamic_shared<Shared>();
    const BlockTile tile = block_tile<C, kTmaCluster>(p);
    const WarpPart<C> part;
    const int k_end = int(p.k);

    TmaProducer<T, C> producer(p, shared, tile);
    producer.start();
    TmaConsumer<T, C> consumer(shared, part.row, part.col);
    if (k_end > 0) consumer.load_stage();
    for (int k = 0; k < k_end; k += C.block_k) {
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        // In the middle of a step along k, when the other warps have left the stage before it too.
        if (step == steps / 2) producer.produce(k + (C.stages - 1) * C.block_k);
        consumer.consume(step, k + C.block_k < k_end);
      }
    }
    consumer.finish();
    store_sums<C.gated != 0>(Epilogue<T, Out, C>(p, tile.batch), shared.tiles.slabs[part.warp],
                             consumer.sums, tile.row + part.row, tile.col + part.col);
  }
};

}  // namespace tensorcraft::kernel::gemm

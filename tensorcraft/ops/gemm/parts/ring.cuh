// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/begin_kernel.cuh"
#include "tensorcraft/device/ptx/cluster.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/swizzle.cuh"
#include "tensorcraft/device/tile/boxed_producer.cuh"
#include "tensorcraft/device/tile/consumers.cuh"
#include "tensorcraft/device/tile/operand_tiles.cuh"
#include "tensorcraft/device/tile/stage_cursor.cuh"
#include "tensorcraft/ops/gemm/parts/tile.cuh"

// The parts of the rungs on wgmma: a ring of stages, the Producer that fills it, and in
// consumer.cuh the warpgroups that multiply from it and bring the sums to D. Each rung is a
// schedule of them.
namespace tensorcraft::kernel::gemm {

template <class T, Config C>
using RingStage = OperandTiles<BoxedTile, T,
                               StepShape{.m = C.block_m,
                                         .n = C.block_n,
                                         .k = C.block_k,
                                         .a_along_k = C.a_layout == Layout::row_major,
                                         .b_along_k = C.b_layout == Layout::column_major}>;

template <Config C>
using RingCluster = ClusterShape<C.cluster_m, C.cluster_n>;

// Rows and columns of the result to the kernel, which with `swap` computes it transposed.
template <Config C>
TC_DEVICE int64_t rows_of(const Params& p) {
  static_assert(!C.gated || !C.swap, "a gated tile has columns of both halves of B");
  return C.swap ? p.n : p.m;
}
template <Config C>
TC_DEVICE int64_t cols_of(const Params& p) {
  return C.swap ? p.m : p.n;
}

// A piece of D as the copy engine takes it.
template <class Out, Config C>
struct alignas(1024) Slot {
  static constexpr SlotShape shape = slot_shape(C, sizeof(Out));
  static constexpr int line_bytes = shape.cols * int(sizeof(Out));
  static constexpr Swizzle swizzle = line_bytes == 128  ? Swizzle::bytes_128
                                     : line_bytes == 64 ? Swizzle::bytes_64
                                                        : Swizzle::bytes_32;
  static_assert(C.slots != kEngineSlots ||
                (line_bytes >= 32 && line_bytes <= 128 && shape.rows * line_bytes <= kSlotBytes));
  Vec4<uint32_t> at[kSlotBytes / kVectorBytes];

  TC_DEVICE unsigned char* place(int line, int chunk) {
    return reinterpret_cast<unsigned char*>(at) +
           swizzled(swizzle, uint32_t(line * line_bytes + chunk * kVectorBytes));
  }
};

template <class T, class Out, Config C>
struct alignas(1024) Ring {
  RingStage<T, C> stages[C.stages];
  Slot<Out, C> slots[num_slots(C) > 0 ? num_slots(C) : 1];
  uint64_t full[C.stages];   // the bytes of a stage have come
  uint64_t empty[C.stages];  // no warp of the cluster reads it any more

  // Makes the barriers, which the whole cluster knows then, while the kernels before this one may
  // still run, and waits for those. `readers`: warpgroups of a block that read each stage.
  TC_DEVICE void start(const WgmmaParams<C>& p, int readers) {
    if (threadIdx.x == 0) {
      ptx::prefetch_tensormap(&p.a_map);
      ptx::prefetch_tensormap(&p.b_map);
      for (int i = 0; i < C.stages; ++i) {
        ptx::mbarrier_init(&full[i], 1);
        ptx::mbarrier_init(&empty[i], uint32_t(RingCluster<C>::blocks * readers * 4));
      }
      ptx::fence_mbarrier_init();
    }
    begin_kernel();
    if constexpr (RingCluster<C>::blocks * C.split > 1) {
      ptx::cluster_arrive_relaxed();  // the fence has ordered the barriers
      ptx::cluster_wait();
    } else {
      __syncthreads();
    }
  }
};

// By all warps that read a stage, when they have: it goes back to the producers that fill it.
template <class T, class Out, Config C>
TC_DEVICE void release_stage(Ring<T, Out, C>& ring, int stage) {
  constexpr int blocks = RingCluster<C>::blocks;
  const int lane = threadIdx.x % 32;
  __syncwarp();
  if constexpr (blocks == 1) {
    if (lane == 0) ptx::mbarrier_arrive(&ring.empty[stage]);
  } else {
    if (lane < blocks) ptx::mbarrier_arrive_cluster_read(&ring.empty[stage], lane);
  }
}

// Fills the ring, by one thread of the block.
template <class T, class Out, Config C>
struct Producer {
  using Stage = RingStage<T, C>;
  Ring<T, Out, C>& ring;
  const WgmmaParams<C>& p;
  StageCursor<C.stages> fill{0, 1};
  using Boxes = BoxedProducer<Stage, RingCluster<C>, C.gated != 0>;
  Boxes boxes;

  TC_DEVICE Producer(Ring<T, Out, C>& memory, const WgmmaParams<C>& params, const BlockTile& tile)
      : ring(memory), p(params), boxes(boxes_of(tile)) {}

  TC_DEVICE Boxes boxes_of(const BlockTile& tile) const {
    const Matrix &a = C.swap ? p.b : p.a, &b = C.swap ? p.a : p.b;
    return {{&p.a_map, a.batch_strides[0]},
            {&p.b_map, b.batch_strides[0]},
            tile,
            C.gated ? int(p.n) : 0};
  }
  // Starts copying a step along k of the tile, when no warp reads its stage any more.
  TC_DEVICE void produce(int step) {
    ptx::mbarrier_wait_parity(&ring.empty[fill.stage], fill.parity);
    Stage& stage = ring.stages[fill.stage];
    uint64_t* const full = &ring.full[fill.stage];
    if constexpr (C.parts == 1) {
      boxes.copy(stage, full, step * C.block_k);
    } else {
      // lo hi, hi lo, hi hi: what is small is summed first.
      const int part = int(part_length(p.k, C.parts, sizeof(T)));
      const int steps = part / C.block_k, product = step / steps;
      const int k = (step - product * steps) * C.block_k;
      boxes.copy(stage, full, k + (product == 0 ? part : 0), k + (product == 1 ? part : 0));
    }
    fill.advance();
  }
  // The same for steps `first` to `end` of a tile.
  TC_DEVICE void produce(const BlockTile& tile, int first, int end) {
    boxes = boxes_of(tile);
#pragma unroll 1
    for (int step = first; step < end; ++step) produce(step);
  }
};

// The steps along k.
template <Config C>
TC_DEVICE int ring_steps(const Params& p) {
  return int(div_ceil(p.k, C.block_k)) * (C.parts > 1 ? kTf32Products : 1);
}

}  // namespace tensorcraft::kernel::gemm

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/device/ptx/cluster.cuh"
#include "tensorcraft/device/ptx/stmatrix.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tile/boxed_producer.cuh"
#include "tensorcraft/device/tile/consumers.cuh"
#include "tensorcraft/device/tile/operand_tiles.cuh"
#include "tensorcraft/device/tile/pipeline.cuh"
#include "tensorcraft/device/tile/stage_cursor.cuh"
#include "tensorcraft/device/tile/warpgroup_sums.cuh"
#include "tensorcraft/device/vec.cuh"
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
using Slot = StoreSlot<slot_shape(C, sizeof(Out)).cols* int(sizeof(Out)), kSlotBytes>;

// A thread's values of 16 columns of the sums, 8 n on in the slot, in its warp's 16 rows.
template <class Out, Config C, bool a_registers>
TC_DEVICE void put_sums(Slot<Out, C>& to, const float (&x)[4][2], int n) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  if constexpr (sizeof(Out) == 2) {
    static_assert(!a_registers);
    uint32_t words[4];
#pragma unroll
    for (int part = 0; part < 4; ++part) words[part] = pack_pair(x[part][0], x[part][1], Out{});
    if constexpr (C.swap)
      ptx::stmatrix_x4_trans(to.place((n + lane / 16) * 8 + lane % 8, warp * 2 + lane / 8 % 2),
                             words);
    else
      ptx::stmatrix_x4(to.place(warp * 16 + lane % 16, n + lane / 16), words);
  } else if constexpr (C.swap) {  // there is no stmatrix for 4 bytes
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int row = sums_row<a_registers>(part % 2) % 32;
      const int line = (n + part / 2) * 8 + lane % 4 * 2;
#pragma unroll
      for (int e = 0; e < 2; ++e)
        *reinterpret_cast<float*>(to.place(line + e, row / 4) + row % 4 * 4) = x[part][e];
    }
  } else {
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int line = sums_row<a_registers>(part % 2);
      const int pair = (n + part / 2) * 4 + lane % 4;
      store_vector(reinterpret_cast<float*>(to.place(line, pair / 2) + pair % 2 * 8),
                   Vec2<float>{x[part][0], x[part][1]});
    }
  }
}

template <class T, class Out, Config C>
struct alignas(1024) Ring {
  static constexpr int slot_line = Slot<Out, C>::line_bytes;
  static_assert(C.slots != kEngineSlots ||
                (slot_line >= 32 && slot_line <= 128 &&
                 slot_shape(C, sizeof(Out)).rows * slot_line <= kSlotBytes));
  RingStage<T, C> stages[C.stages];
  Slot<Out, C> slots[num_slots(C) > 0 ? num_slots(C) : 1];
  Barriers<C.stages> barriers;  // empty: of the warps of the whole cluster

  // `readers`: warpgroups of a block that read each stage. The whole cluster knows the barriers
  // then.
  TC_DEVICE void start(const WgmmaParams<C>& p, int readers) {
    begin_with_barriers([&] {
      ptx::prefetch_tensormap(&p.a_map);
      ptx::prefetch_tensormap(&p.b_map);
      barriers.init(RingCluster<C>::blocks * readers * 4);
    });
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
    if (lane == 0) ptx::mbarrier_arrive(&ring.barriers.empty[stage]);
  } else {
    if (lane < blocks) ptx::mbarrier_arrive_cluster_read(&ring.barriers.empty[stage], lane);
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
    ptx::mbarrier_wait_parity(&ring.barriers.empty[fill.stage], fill.parity);
    Stage& stage = ring.stages[fill.stage];
    uint64_t* const full = &ring.barriers.full[fill.stage];
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
  // Serves steps `first` to `end` of a tile.
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

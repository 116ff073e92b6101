// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lines of shared memory need no padding: a chunk's place is exchanged with another by the bits of
// its line, so the 8 chunks that ldmatrix reads at once are still in 8 different bank groups.
//
// Now lines are whole multiples of 128 bytes, as cp.async fills them best, and copies need no
// registers: those hold the fragments of the step after this one instead, so that a multiply never
// waits for its operands. With s stages a copy has s - 2 steps of the product to arrive:
//   64 x 64 x 64 products of a warp = 128 instructions a step, more than 500 clocks.
// Compared with tensor_core the two barriers and the round trip through registers become one
// barrier, and the next operands are already loaded at it.
// It demands a unit stride in A and in B, and that every line starts at a multiple of 16 bytes.
// Float operands are rounded to tf32, which the caller must have allowed. 8-bit operands lie along
// k, and a step is what is promoted at once.
#include "tensorcraft/device/copy_ring.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tile/swizzled_tile.cuh"
#include "tensorcraft/device/tile/tile_copier.cuh"
#include "tensorcraft/ops/gemm/parts/stages.cuh"

namespace tensorcraft::kernel::gemm {

template <class T, Config C>
using SwizzledShared = StagesOrSlabs<SwizzledTile, T, C>;

struct Swizzled {
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    using Shared = SwizzledShared<T, C>;
    using Stage = typename Shared::Stage;
    constexpr int steps = C.block_k / kMmaDepth<T>;
    static_assert(sizeof(Shared) == swizzled_shared_bytes(C, sizeof(T)));
    static_assert(C.block_k % (2 * kMmaDepth<T>) == 0,
                  "an even number of steps alternates fragments");
    auto& shared = dynamic_shared<Shared>();
    const Tile<C> tile = block_tile<C>(p);
    if (is_none(tile)) return;
    const WarpPart<C> part;
    const int rows = min_of(row_end(p, tile) - tile.row, C.block_m);
    const int cols = min_of(p.n - tile.col, tile_columns(C));
    const int64_t begin = k_begin(tile), end = k_end(p, tile);

    TileCopier<T, typename Stage::A, C.threads, C.a_vector == kVectorSize<T>> a(
        a_of_tile<const T>(p, tile), Stage::a_along_k ? p.a.row_stride : p.a.col_stride);
    TileCopier<T, typename Stage::B, C.threads, C.b_vector == kVectorSize<T>, ColumnOrder<C>,
               !Stage::b_along_k>
        b(b_of_tile<const T>(p, tile), Stage::b_along_k ? p.b.col_stride : p.b.row_stride,
          half_jump<C>(p));
    int64_t to_copy = begin;  // the first k that is not on its way
    const auto copy = [&](int stage) {
      if (to_copy >= end) return;
      const int left = min_of(end - to_copy, C.block_k);
      a.copy(shared.stages[stage].a, Stage::a_along_k ? rows : left,
             Stage::a_along_k ? left : rows);
      b.copy(shared.stages[stage].b, Stage::b_along_k ? cols : left,
             Stage::b_along_k ? left : cols);
      a.source += C.block_k * p.a.col_stride;
      b.source += C.block_k * p.b.row_stride;
      to_copy += C.block_k;
    };
    CopyRing<C.stages> ring;
    constexpr bool promotes = C.promotion != Promotion::none;
    static_assert(!promotes || (C.promotion == Promotion::plain && C.block_k == kScaleBlock));
    WarpSums<C.warp_m, C.warp_n> sums = {}, promoted = {};
    Fragments<C.warp_m, C.warp_n> fragments[2];
    const auto load = [&](int stage, int step) {
      fragments[step % 2].load(shared.stages[stage], part.row, part.col, step * kMmaDepth<T>,
                               part.half_jump);
    };
#pragma unroll
    for (int i = 0; i < C.stages - 1; ++i) ring.fill(copy);
    int stage = ring.next();
    if (begin < end) load(stage, 0);
    for (int64_t k0 = begin; k0 < end; k0 += C.block_k) {
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        // Before the next fragments are live: the copies' addresses need registers too.
        if (step == 0) ring.fill(copy);
        if (step + 1 < steps) {
          load(stage, step + 1);
        } else {
          stage = ring.next();
          if (k0 + C.block_k < end) load(stage, 0);
        }
        sums.template add_product<T>(fragments[step % 2]);
      }
      if constexpr (promotes) promoted.take(sums);
    }
    ring.finish();
    store_sums<C.gated != 0>(Epilogue<T, Out, C>(p, tile), shared.slabs[part.warp],
                             promotes ? promoted : sums, tile.row + part.row, tile.col + part.col);
  }
};

// swizzled by the name for float operands, which says that they are rounded.
struct SwizzledTf32 {
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    Swizzled::run<T, Out, C>(p);
  }
};

}  // namespace tensorcraft::kernel::gemm

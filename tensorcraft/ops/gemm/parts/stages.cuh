// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/tile/operand_tiles.cuh"
#include "tensorcraft/device/tile/slab.cuh"
#include "tensorcraft/ops/gemm/parts/epilogue.cuh"

namespace tensorcraft::kernel::gemm {

// Shared memory of a rung on tensor cores: stages of both operands, and after the last step a slab
// for each warp's sums instead.
template <template <class, int, int> class Tile, class T, Config C, int kStages = C.stages>
union StagesOrSlabs {
  using Stage = OperandTiles<Tile, T,
                             StepShape{.m = C.block_m,
                                       .n = C.block_n,
                                       .k = C.block_k,
                                       .a_along_k = C.a_layout == Layout::row_major,
                                       .b_along_k = C.b_layout == Layout::column_major}>;
  Stage stages[kStages];
  Slab<C.warp_n> slabs[C.threads / 32];
};

// A warp's part of a tile of D and of its columns of B. Gated: as many columns of both halves.
template <Config C>
struct WarpPart {
  static constexpr int warps_n = C.block_n / C.warp_n, cols = C.warp_n / (C.gated ? 2 : 1);
  // From the part's place in the left half of the tile of B to that in the right, less `cols`.
  static constexpr int half_jump = C.gated ? (C.block_n - C.warp_n) / 2 : 0;
  static_assert(C.threads == C.block_m / C.warp_m * warps_n * 32, "the warps cover the tile");
  static_assert(!C.gated || C.warp_n % 32 == 0, "a fragment is of one half");
  int warp = threadIdx.x / 32;
  int row = warp / warps_n * C.warp_m, col = warp % warps_n * cols;
};

}  // namespace tensorcraft::kernel::gemm

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/tile/operand_tiles.cuh"
#include "tensorcraft/device/tile/slab.cuh"
#include "tensorcraft/ops/gemm/epilogue.cuh"

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

}  // namespace tensorcraft::kernel::gemm

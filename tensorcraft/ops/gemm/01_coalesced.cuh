// SPDX-License-Identifier: Apache-2.0
#pragma once
// One change from naive: neighbouring threads walk along a row of D, not down a column.
//
// With row-major B and D a warp's 32 loads of B are one 128-byte line instead of the same element,
// its 32 stores are one line instead of 32, and its loads of A are one broadcast instead of 32
// lines: for each step of k a warp touches 2 lines instead of 33.
// It accepts every shape and every stride; it is fast if B and D are row-major.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/gemm/parts/epilogue.cuh"

namespace tensorcraft::kernel::gemm {

struct Coalesced {
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    static_assert(C.threads == C.block_m * C.block_n, "one thread computes one element");
    const BlockTile tile = block_tile<C>(p);
    const int64_t row = tile.row + threadIdx.x / C.block_n;
    const int64_t col = tile.col + threadIdx.x % C.block_n;
    if (row >= p.m || col >= p.n) return;

    const T* a = batch_entry<const T>(p, p.a, tile.batch) + row * p.a.row_stride;
    const T* b = batch_entry<const T>(p, p.b, tile.batch) + col * p.b.col_stride;
    float sum[1] = {};
    for (int64_t k = 0; k < p.k; ++k) {
      sum[0] += float(a[k * p.a.col_stride]) * float(b[k * p.b.row_stride]);
    }
    Epilogue<T, Out, C>(p, tile.batch).store(sum, row, col);
  }
};

}  // namespace tensorcraft::kernel::gemm

// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bottom of the ladder: one thread computes one element of D, straight from global memory.
//
// Each of the 2k loads of a thread feeds one multiply-add, so its intensity is
//   2 flop / (2 loads x sizeof(T)) = 0.25 flop/byte for float.
// Neighbouring threads walk down a column of D, so a warp's loads of A are 32 rows apart.
// It accepts every shape and every stride.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/gemm/epilogue.cuh"

namespace tensorcraft::kernel::gemm {

// A row of A times a column of B.
template <class T>
TC_DEVICE float dot(const Params& p, const T* a, const T* b) {
  float sum = 0;
  for (int64_t k = 0; k < p.k; ++k)
    sum += float(a[k * p.a.col_stride]) * float(b[k * p.b.row_stride]);
  return sum;
}

struct Naive {
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    static_assert(C.threads == C.block_m * tile_columns(C), "one thread computes one element");
    const BlockTile tile = block_tile<C>(p);
    const int64_t row = tile.row + threadIdx.x % C.block_m;
    const int64_t col = tile.col + threadIdx.x / C.block_m;
    if (row >= p.m || col >= p.n) return;

    const T* a = batch_entry<const T>(p, p.a, tile.batch) + row * p.a.row_stride;
    const T* b = batch_entry<const T>(p, p.b, tile.batch) + col * p.b.col_stride;
    const Epilogue<T, Out, C> epilogue(p, tile.batch);
    float sum[1], up[1];
    sum[0] = dot(p, a, b);
    if constexpr (C.gated) {
      up[0] = dot(p, a, b + half_jump<C>(p));
      epilogue.store(sum, up, row, col);
    } else {
      epilogue.store(sum, row, col);
    }
  }
};

}  // namespace tensorcraft::kernel::gemm

// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bottom of the ladder: one thread computes one element of D, straight from global memory.
//
// Each of the 2k loads of a thread feeds one multiply-add, so its intensity is
//   2 flop / (2 loads x sizeof(T)) = 0.25 flop/byte for float.
// Neighbouring threads walk down a column of D, so a warp's loads of A are 32 rows apart.
// It accepts every shape and every stride.
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/gemm/parts/epilogue.cuh"

namespace tensorcraft::kernel::gemm {

// A row of A times a column of B, `first` to `end` of k.
template <class T>
TC_DEVICE SumOf<T> dot_of_part(const Params& p, const T* a, const T* b, int64_t first,
                               int64_t end) {
  SumOf<T> sum = 0;
  for (int64_t k = first; k < end; ++k)
    sum += SumOf<T>(a[k * p.a.col_stride]) * SumOf<T>(b[k * p.b.row_stride]);
  return sum;
}

// Sums over all k of 8-bit floats, with the scales of each block.
template <Config C, class T>
TC_DEVICE float dot_of_blocks(const ParamsOf<C>& p, uint32_t batch, const T* a, const T* b,
                              int64_t row, int64_t col) {
  const float* a_scale = a_scale_of<C>(p, batch) + row * p.a_scale_stride;
  const float* b_scale = b_scale_of<C>(p, batch) + col / p.scale_columns * p.b_scale_stride;
  float sum = 0;
  for (int64_t k = 0; k < p.k; k += kScaleBlock) {
    sum += *a_scale * *b_scale * dot_of_part(p, a, b, k, k + min_of(p.k - k, kScaleBlock));
    a_scale += p.a_scale_step;
    b_scale += p.b_scale_step;
  }
  return sum;
}

// Sums over all k of a tile.
template <Config C, class T>
TC_DEVICE float dot(const ParamsOf<C>& p, const Tile<C>& tile, const T* a, const T* b, int64_t row,
                    int64_t col) {
  if constexpr (kMayScaleBlocks<T>)
    if (p.scale_columns) return dot_of_blocks<C>(p, tile.batch, a, b, row, col);
  return sum_bits(dot_of_part(p, a, b, k_begin(tile), k_end(p, tile)));
}

struct Naive {
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    static_assert(C.threads == C.block_m * tile_columns(C), "one thread computes one element");
    const Tile<C> tile = block_tile<C>(p);
    if (is_none(tile)) return;
    const int64_t row = tile.row + threadIdx.x % C.block_m;
    const int64_t col = tile.col + threadIdx.x / C.block_m;
    if (row >= row_end(p, tile) || col >= p.n) return;

    const T* a = batch_entry<const T>(p, p.a, tile.batch) + row * p.a.row_stride;
    const T* b = batch_entry<const T>(p, p.b, tile.batch) + col * p.b.col_stride;
    const Epilogue<T, Out, C> epilogue(p, tile);
    float sum[1], up[1];
    sum[0] = dot<C>(p, tile, a, b, row, col);
    if constexpr (C.gated) {
      up[0] = dot<C>(p, tile, a, b + half_jump<C>(p), row, col + p.n);
      epilogue.store(sum, up, row, col);
    } else {
      epilogue.store(sum, row, col);
    }
  }
};

}  // namespace tensorcraft::kernel::gemm

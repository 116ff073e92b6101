// SPDX-License-Identifier: Apache-2.0
#pragma once
// One block, one tile; any strides. Two walks over the tile, for its range and for the results, one
// element at a time; each thread divides the index of each element. A whole tensor is one tile.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/quantize/scale.cuh"

namespace tensorcraft::kernel::quantize {

struct Naive {
  template <class T, class Q, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    auto& scratch = static_shared<BlockReduce<float>>();
    const Tiles& t = p.tiles;
    for (int64_t tile = blockIdx.x; tile < t.row_tiles * t.col_tiles; tile += gridDim.x) {
      const int64_t row_tile = tile / t.col_tiles, col_tile = tile % t.col_tiles;
      const int64_t row = t.first_row(row_tile), col = col_tile * t.tile_cols;
      const int64_t cols = t.last_col(col_tile) - col, size = (t.last_row(row_tile) - row) * cols;
      const auto element = [&](int64_t i) {
        const int64_t at = row_offset(p, Params::kX, row + i / cols) + (col + i % cols) * p.x_step;
        return float(static_cast<const T*>(p.x)[at]);
      };
      Scale s;
      if (p.given) {
        s = given_scale(p, t.scale_at(row_tile, col_tile));
      } else {
        Range range;
#pragma unroll 1  // two divisions an element
        for (int64_t i = threadIdx.x; i < size; i += C.threads)
          widen(range, element(i), p.asymmetric != 0);
        range.high = block_max(scratch, range.high);
        range.low = block_max(scratch, range.low);
        s = scale_of<Q>(range, p.asymmetric != 0, p.power_of_two != 0);
        store_scale(p, s, row_tile, col_tile, int(threadIdx.x), p.asymmetric != 0);
      }
#pragma unroll 1
      for (int64_t i = threadIdx.x; i < size; i += C.threads) {
        const int64_t at =
            row_offset(p, Params::kOut, row + i / cols) + (col + i % cols) * p.out_step;
        static_cast<Q*>(p.out)[at] = to_code<Q>(element(i) / s.scale, s.zero_point);
      }
    }
  }
};

}  // namespace tensorcraft::kernel::quantize

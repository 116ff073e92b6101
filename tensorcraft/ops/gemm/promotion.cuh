// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/tile/warpgroup_sums.cuh"
#include "tensorcraft/ops/gemm/tile.cuh"

// Products of 8-bit floats leave the tensor cores after each block of k: those keep 13 bits of a
// sum, so its error would grow with k, and scales by block change there. The block's sums times its
// scales are added up in float32.
namespace tensorcraft::kernel::gemm {

// The scales of one operand: of each line, or of squares of kScaleBlock lines.
struct BlockScales {
  const float* data;
  int64_t next_line, next_block, last_line;

  TC_DEVICE float at(int64_t line, int64_t block) const {
    return data[(line < last_line ? line : last_line) * next_line + block * next_block];
  }
};
template <Config C>
TC_DEVICE BlockScales a_scales(const ParamsOf<C>& p, uint32_t batch) {
  return {a_scale_of<C>(p, batch), p.a_scale_stride, p.a_scale_step, p.m - 1};
}
template <Config C>
TC_DEVICE BlockScales b_scales(const ParamsOf<C>& p, uint32_t batch) {
  const int64_t lines = C.promotion == Promotion::by_square ? div_ceil(p.n, kScaleBlock) : p.n;
  return {b_scale_of<C>(p, batch), p.b_scale_stride, p.b_scale_step, lines - 1};
}

// A thread's scales of one block along k: of its rows and columns of the result to the kernel.
template <Config C, int kRows>
struct StepScales {
  static constexpr bool row_squares = C.swap && C.promotion == Promotion::by_square;
  static constexpr bool columns = has_column_scales(C);
  // Squares that meet the columns of a tile.
  static constexpr int kSquares =
      kScaleBlock % C.block_n == 0 ? 1 : 1 + div_ceil(C.block_n, kScaleBlock);
  float row[kRows / 64][row_squares ? 1 : 2];
  float col[columns ? C.block_n / 8 : kSquares][columns ? 2 : 1];

  TC_DEVICE void load(const ParamsOf<C>& p, const BlockTile& tile, int first_row, int step) {
    const BlockScales rows = C.swap ? b_scales<C>(p, tile.batch) : a_scales<C>(p, tile.batch);
    const BlockScales cols = C.swap ? a_scales<C>(p, tile.batch) : b_scales<C>(p, tile.batch);
#pragma unroll
    for (int i = 0; i < kRows / 64; ++i) {
      const int64_t first = tile.row + first_row + i * 64;
      if constexpr (row_squares) {
        row[i][0] = rows.at(first / kScaleBlock, step);
      } else {
#pragma unroll
        for (int half = 0; half < 2; ++half)
          row[i][half] = rows.at(first + sums_row<false>(half), step);
      }
    }
    if constexpr (columns) {
#pragma unroll
      for (int n = 0; n < C.block_n / 8; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e)
          col[n][e] = cols.at(tile.col + n * 8 + int(threadIdx.x) % 4 * 2 + e, step);
      }
    } else {
#pragma unroll
      for (int square = 0; square < kSquares; ++square)
        col[square][0] = cols.at(tile.col / kScaleBlock + square, step);
    }
  }

  // Of a sum in row `half` of 64 i and column e of 8 n, where the tile begins `begin` columns after
  // a square does.
  TC_DEVICE float of(int i, int half, int n, int e, int begin) const {
    float scale = columns ? col[n][columns ? e : 0] : col[0][0];
    if constexpr (!columns) {
#pragma unroll
      for (int square = 1; square < kSquares; ++square)
        if (begin + n * 8 >= square * kScaleBlock) scale = col[square][0];
    }
    return row[i][row_squares ? 0 : half] * scale;
  }
};

// What promotes a consumer's sums.
template <Config C, int kRows>
struct Promoter {
  static constexpr bool by_block = is_by_block(C.promotion);
  BlockTile tile;
  int first_row, step;
  StepScales<C, kRows> scales;

  // Before the products from step `first` on of a tile.
  TC_DEVICE void begin(const ParamsOf<C>& p, const BlockTile& of, int row, int first) {
    tile = of;
    first_row = row;
    step = first;
    if constexpr (by_block) scales.load(p, tile, first_row, step);
  }
  // Adds the sums of a step of rows 64 i on, which are complete.
  template <int kCols>
  TC_DEVICE void add(WarpgroupSums<kRows, kCols>& sums, const WarpgroupSums<64, kCols>& part,
                     int i) const {
    const int begin = int(tile.col % kScaleBlock);
#pragma unroll
    for (int n = 0; n < kCols / 8; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const float x = part.element(0, n, half, e);
          float& sum = sums.element(i, n, half, e);
          if constexpr (by_block)
            sum += x * scales.of(i, half, n, e, begin);
          else
            sum += x;
        }
      }
    }
  }
  // Goes on to the next step.
  TC_DEVICE void advance(const StepScales<C, kRows>& next) {
    if constexpr (by_block) scales = next;
    ++step;
  }
  // The scales of the step after this one, or those of the last again.
  TC_DEVICE StepScales<C, kRows> load_next(const ParamsOf<C>& p, int steps) const {
    StepScales<C, kRows> next = {};
    if constexpr (by_block) next.load(p, tile, first_row, min_of(step + 1, steps - 1));
    return next;
  }
};

}  // namespace tensorcraft::kernel::gemm

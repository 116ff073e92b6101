// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/tile/block_tile.cuh"
#include "tensorcraft/device/tile/warpgroup_sums.cuh"
#include "tensorcraft/ops/gemm/parts/tile.cuh"

// Products of 8-bit floats leave the tensor cores after each block of k: those keep 13 bits of a
// sum, so its error would grow with k, and scales by block change there. The block's sums times its
// scales are added up in float32.
namespace tensorcraft::kernel::gemm {

// The scales of one operand: of each line, or of squares of kScaleBlock lines. The copy engine
// counts lines in 31 bits.
struct BlockScales {
  const float* data;
  int64_t next_line, next_block;
  uint32_t last_line;

  TC_DEVICE float at(uint32_t line, uint32_t block) const {
    return data[(line < last_line ? line : last_line) * next_line + block * next_block];
  }
};
template <Config C>
TC_DEVICE BlockScales a_scales(const ParamsOf<C>& p, uint32_t batch) {
  return {a_scale_of<C>(p, batch), p.a_scale_stride, p.a_scale_step, uint32_t(p.m) - 1};
}
template <Config C>
TC_DEVICE BlockScales b_scales(const ParamsOf<C>& p, uint32_t batch) {
  const uint32_t n = uint32_t(p.n), squares = (n + kScaleBlock - 1) / kScaleBlock;
  return {b_scale_of<C>(p, batch), p.b_scale_stride, p.b_scale_step,
          (C.promotion == Promotion::by_square ? squares : n) - 1};
}

// Which scales a consumer's part of a tile has in each block along k.
template <Config C>
struct ScalesOfTile {
  static constexpr bool columns = has_column_scales(C);
  // With `swap` squares of B are rows: 64 of them have one scale.
  static constexpr int halves = C.swap && C.promotion == Promotion::by_square ? 1 : 2;
  // A tile begins a multiple of `grid` columns after a square does, and meets so many.
  static constexpr int grid = C.block_n % kScaleBlock == 0 ? kScaleBlock : C.block_n & -C.block_n;
  static constexpr int squares =
      columns ? 1 : 1 + (kScaleBlock - grid + C.block_n - 1) / kScaleBlock;
  // Can a square begin at column 8 n of a tile?
  TC_HOST_DEVICE static constexpr bool may_begin(int square, int n) {
    const int begin = square * kScaleBlock - n * 8;
    return begin >= 0 && begin < kScaleBlock && begin % grid == 0;
  }
};

// A thread's scales of rows, and of squares of columns.
template <Config C, int kRows>
struct RowScales {
  using Shape = ScalesOfTile<C>;
  float row[kRows / 64][Shape::halves], square[Shape::squares];

  // From row `first` and column `col` of the result to the kernel on.
  TC_DEVICE void load(const ParamsOf<C>& p, uint32_t batch, int first, int col, uint32_t step) {
    const BlockScales rows = C.swap ? b_scales<C>(p, batch) : a_scales<C>(p, batch);
#pragma unroll
    for (int i = 0; i < kRows / 64; ++i) {
      const int at = first + i * 64;
#pragma unroll
      for (int half = 0; half < Shape::halves; ++half)
        row[i][half] = rows.at(
            uint32_t(Shape::halves == 1 ? at / kScaleBlock : at + sums_row<false>(half)), step);
    }
    if constexpr (!Shape::columns) {
      const BlockScales cols = b_scales<C>(p, batch);
#pragma unroll
      for (int i = 0; i < Shape::squares; ++i)
        square[i] = cols.at(uint32_t(col / kScaleBlock + i), step);
    }
  }
};

// A thread's scales of columns.
template <Config C>
struct ColumnScales {
  float at[C.block_n / 8][2];

  TC_DEVICE void load(const ParamsOf<C>& p, uint32_t batch, int first, uint32_t step) {
    const BlockScales cols = C.swap ? a_scales<C>(p, batch) : b_scales<C>(p, batch);
#pragma unroll
    for (int n = 0; n < C.block_n / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e)
        at[n][e] = cols.at(uint32_t(first) + n * 8 + threadIdx.x % 4 * 2 + e, step);
    }
  }
};

// Promotes a consumer's sums. Four neighbouring lanes need the same scales of rows, and every
// fourth lane the same of columns, so each of those loads the scales of a step of its own: memory
// is asked once in four or eight steps, as many steps ahead.
template <Config C, int kRows>
struct Promoter {
  using Shape = ScalesOfTile<C>;
  static constexpr bool by_block = is_by_block(C.promotion);
  static constexpr bool by_square = by_block && !Shape::columns;
  static constexpr int kRowsAhead = 4, kColumnsAhead = 8;
  uint32_t batch;
  int row, col;           // the first of the result to the kernel
  int step, end, number;  // of the step among eight
  RowScales<C, kRows> rows, next_rows;
  ColumnScales<C> columns, next_columns;

  // Before the products of steps `first` to `last` of a tile.
  TC_DEVICE void begin(const ParamsOf<C>& p, const BlockTile& tile, int first_row, int first,
                       int last) {
    if constexpr (!by_block) return;
    batch = tile.batch;
    row = int(tile.row) + first_row;
    col = int(tile.col);
    step = first;
    end = last;
    number = 0;
    load_rows(p, first);
    load_columns(p, first);
  }
  // Before a step: its scales are there.
  TC_DEVICE void begin_step() {
    if constexpr (!by_block) return;
    if (number % kRowsAhead == 0) rows = next_rows;
    if (number == 0) columns = next_columns;
  }
  // The scales of a step for rows 64 i on: of the two rows, times those of the squares if there
  // are.
  struct OfStep {
    float row[Shape::columns ? 1 : Shape::squares][2],
        column[Shape::columns ? C.block_n / 8 : 1][2];
  };
  // Best while products run: also asks for those of later steps.
  TC_DEVICE OfStep of_step(const ParamsOf<C>& p, int i) {
    OfStep of = {};
    if constexpr (by_block) {
      of.row[0][0] = of_row(rows.row[i][0]);
      of.row[0][1] = Shape::halves == 1 ? of.row[0][0] : of_row(rows.row[i][Shape::halves - 1]);
    }
    if constexpr (by_square) {
#pragma unroll
      for (int at = Shape::squares - 1; at >= 0; --at) {
        const float square = of_row(rows.square[at]);
        for (int half = 0; half < 2; ++half) of.row[at][half] = of.row[0][half] * square;
      }
    } else if constexpr (by_block) {
#pragma unroll
      for (int n = 0; n < C.block_n / 8; ++n)
        for (int e = 0; e < 2; ++e) of.column[n][e] = of_column(columns.at[n][e]);
    }
    if (by_block && i == 0) load_ahead(p);
    return of;
  }
  // Adds the sums of a step of rows 64 i on, which are complete.
  template <int kCols>
  TC_DEVICE void add(WarpgroupSums<kRows, kCols>& sums, const WarpgroupSums<64, kCols>& part, int i,
                     const OfStep& of) const {
    float scale[2] = {of.row[0][0], of.row[0][1]};
#pragma unroll
    for (int n = 0; n < kCols / 8; ++n) {
      if constexpr (by_square) {
#pragma unroll
        for (int at = 1; at < Shape::squares; ++at) {
          const bool begins = col % kScaleBlock == at * kScaleBlock - n * 8;
          if (Shape::may_begin(at, n) && begins)
            for (int half = 0; half < 2; ++half) scale[half] = of.row[at][half];
        }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const float x = part.element(0, n, half, e);
          float& sum = sums.element(i, n, half, e);
          if constexpr (!by_block)
            sum += x;
          else if constexpr (Shape::columns)
            sum += x * (scale[half] * of.column[n][e]);
          else
            sum += x * scale[half];
        }
      }
    }
  }
  // After a step.
  TC_DEVICE void advance() {
    ++step;
    number = (number + 1) % kColumnsAhead;
  }

 private:
  TC_DEVICE void load_ahead(const ParamsOf<C>& p) {
    if (number % kRowsAhead == 0 && step + kRowsAhead < end) load_rows(p, step + kRowsAhead);
    if (number == 0 && step + kColumnsAhead < end) load_columns(p, step + kColumnsAhead);
  }
  TC_DEVICE void load_rows(const ParamsOf<C>& p, int from) {
    next_rows.load(p, batch, row, col, min_of(from + int(threadIdx.x) % kRowsAhead, end - 1));
  }
  TC_DEVICE void load_columns(const ParamsOf<C>& p, int from) {
    if constexpr (Shape::columns)
      next_columns.load(p, batch, col, min_of(from + int(threadIdx.x) % 32 / 4, end - 1));
  }
  // The scale of the step among those that the lanes loaded.
  TC_DEVICE float of_row(float x) const {
    return __shfl_sync(kFullWarp, x, number % kRowsAhead, kRowsAhead);
  }
  TC_DEVICE float of_column(float x) const {
    return __shfl_sync(kFullWarp, x, number * 4 + int(threadIdx.x) % 4);
  }
};

}  // namespace tensorcraft::kernel::gemm

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/divider.h"
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::quantize {

// Which elements share a scale: tiles of tile_rows x tile_cols of a matrix of `rows` rows. A tile
// does not cross the end of `batch_rows` rows, nor that of a row.
struct Tiles {
  int64_t rows, cols, batch_rows;
  int64_t tile_rows, tile_cols;
  int64_t tiles_of_batch;        // tiles below each other in batch_rows rows
  int64_t row_tiles, col_tiles;  // of the whole matrix
  int64_t scale_row, scale_col;  // strides of the scales, along row_tiles and col_tiles
  int64_t padded_rows;           // scales of a column, those behind row_tiles are 0
  Divider across;                // by col_tiles, for in_registers

  // The rows of the tiles number `row_tile`: [first, last).
  TC_HOST_DEVICE int64_t first_row(int64_t row_tile) const {
    if (tile_rows == 1) return row_tile;
    return row_tile / tiles_of_batch * batch_rows + row_tile % tiles_of_batch * tile_rows;
  }
  TC_HOST_DEVICE int64_t last_row(int64_t row_tile) const {
    if (tile_rows == 1) return row_tile + 1;
    const int64_t end = (row_tile / tiles_of_batch + 1) * batch_rows;
    const int64_t last = first_row(row_tile) + tile_rows;
    return last < end ? last : end;
  }
  TC_HOST_DEVICE int64_t last_col(int64_t col_tile) const {
    const int64_t last = (col_tile + 1) * tile_cols;
    return last < cols ? last : cols;
  }
  TC_HOST_DEVICE int64_t row_tile_of(int64_t row) const {
    if (tile_rows == 1) return row;
    return row / batch_rows * tiles_of_batch + row % batch_rows / tile_rows;
  }
  TC_HOST_DEVICE int64_t scale_at(int64_t row_tile, int64_t col_tile) const {
    return row_tile * scale_row + col_tile * scale_col;
  }
};

// Run time of quantize and dequantize; x_step and out_step are strides along the last axis, step
// those of rows.
struct Params {
  enum { kX, kOut, kTensors };
  int64_t x_step, out_step;
  const void* x;
  void* out;
  float* scales;         // read if `given`, and by dequantize
  int32_t* zero_points;  // likewise; null: 0
  float* partials;       // of a whole tensor: what its first launch found, `parts` times
  int64_t parts;
  int32_t given, asymmetric, power_of_two;
  Tiles tiles;
  int64_t step[kTensors];
};

struct Config {
  int threads = 256;
  int group = 256;     // threads that share a tile
  int vector = 1;      // elements of one access of x
  int slots = 1;       // accesses of a thread that hold a tile together
  int tile_rows = 1;   // 1 or 128
  int given = 0;       // scales are given, or are the first launch's
  int asymmetric = 0;  // the zero point is computed
  int nested = 0;      // the rows of a tensor lie along more than one axis
};

}  // namespace tensorcraft::kernel::quantize

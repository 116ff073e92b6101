// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/row_plan.h"
#include "tensorcraft/ops/quantize/params.h"

#include <string_view>

// Which tiles share a scale, and which Config and grid each rung gets; host only. A `problem` is
// why a rung declines, or empty.
namespace tensorcraft::kernel::quantize {

using Launch = op::LaunchPlan<Config>;

inline constexpr int kThreads = 256;
inline constexpr int64_t kBlock = 128;  // elements of a block, and rows of a square one
inline constexpr int64_t kPadding = 4;  // rows of a column of scales: 16 bytes, as TMA strides

// An empty row has no tiles, and nothing is divided by them.
inline Divider divider_by(int64_t col_tiles) {
  return Divider::of(std::max<int64_t>(col_tiles, 1));
}

// One scale for everything.
inline Tiles tensor_tiles(int64_t rows, int64_t cols) {
  return {rows, cols, rows, rows, cols, 1, 1, 1, 0, 0, 0, Divider::of(1)};
}
// One scale for a row.
inline Tiles token_tiles(int64_t rows, int64_t cols) {
  return {rows, cols, rows, 1, cols, rows, rows, 1, 1, 0, 0, Divider::of(1)};
}
// One scale for 128 elements of a row; `column`: scales of one block lie next to each other.
inline Tiles block_tiles(int64_t rows, int64_t cols, bool column) {
  const int64_t blocks = div_ceil(cols, kBlock), padded = round_up(rows, kPadding);
  Tiles t{rows, cols, rows, 1, kBlock, rows, rows, blocks, blocks, 1, 0, divider_by(blocks)};
  if (column) t.scale_row = 1, t.scale_col = t.padded_rows = padded;
  return t;
}
// One scale for 128 x 128 elements of each of rows / batch_rows matrices.
inline Tiles square_tiles(int64_t rows, int64_t cols, int64_t batch_rows) {
  const int64_t down = div_ceil(batch_rows, kBlock), across = div_ceil(cols, kBlock);
  const int64_t batches = batch_rows ? rows / batch_rows : 0;
  return {rows,           cols,   batch_rows, kBlock, kBlock, down,
          batches * down, across, across,     1,      0,      divider_by(across)};
}

// Elements of one access where 16 bytes of the wider type are `wide` elements; the narrow type has
// one byte an element. 1 where a row cannot be divided into such accesses.
inline int vector_of(const Params& p, bool wide_is_x, int wide_bytes) {
  const int vector = 16 / wide_bytes;
  const void* wide = wide_is_x ? p.x : p.out;
  const void* narrow = wide_is_x ? p.out : p.x;
  const RowMap& wide_rows = p.maps[wide_is_x ? Params::kX : Params::kOut];
  const RowMap& narrow_rows = p.maps[wide_is_x ? Params::kOut : Params::kX];
  if (p.tiles.cols % vector || !op::rows_vector_aligned(wide, wide_rows, wide_bytes)) return 1;
  if (reinterpret_cast<uintptr_t>(narrow) % size_t(vector)) return 1;
  for (int i = 0; i < narrow_rows.axes; ++i)
    if (narrow_rows.stride[i] % vector) return 1;
  return vector;
}

inline Launch naive_launch(const Params& p) {
  return {{.threads = kThreads, .nested = p.maps.is_nested()},
          std::min(p.tiles.row_tiles * p.tiles.col_tiles, op::kMaxBlocks)};
}

// Rows beyond op::kMaxRegisterRow are divided over more threads, 64 elements each.
inline constexpr int kLongRowThreads = 512;
inline constexpr int64_t kLongestRegisterRow = 64 * int64_t(kLongRowThreads);
// Single accesses of longer rows are too much code.
inline constexpr int64_t kLongestUnaligned = 4096;

// A contiguous tensor with one scale, as parts that its blocks hold in registers.
inline constexpr int kFlatSlots = 4, kAmaxSlots = 8;
inline Params flat(Params p, int x_bytes) {
  const int64_t size = p.tiles.rows * p.tiles.cols;
  const int64_t part = int64_t(kThreads) * kFlatSlots * 16 / x_bytes;
  const int64_t parts = div_ceil(size, part);
  p.tiles = {1, size, 1, 1, part, 1, 1, parts, 0, 0, 0, divider_by(parts)};
  p.x_step = p.out_step = 1;
  p.maps = {};
  return p;
}

inline Config in_registers_config(const Params& p, int x_bytes) {
  const int vector = vector_of(p, true, x_bytes);
  Config c{.threads = kThreads, .vector = vector};
  if (p.tiles.tile_rows == kBlock) {
    c.slots = int(kBlock * kBlock) / (c.group * vector);
    c.tile_rows = int(kBlock);
  } else if (p.tiles.scale_row == 0) {  // one scale for all: flat parameters
    c.slots = kFlatSlots;
  } else if (p.tiles.tile_cols == kBlock) {
    c.slots = 4;
    c.group = int(kBlock) / (vector * c.slots);
  } else if (p.tiles.tile_cols > op::kMaxRegisterRow) {
    c.threads = c.group = kLongRowThreads;
    c.slots = int(div_ceil(p.tiles.tile_cols, int64_t(vector) * kLongRowThreads));
  } else {
    const auto [threads, group, slots] = op::split_rows(p.tiles.tile_cols, vector);
    c.threads = threads;
    c.group = group;
    c.slots = slots;
  }
  c.given = p.given || p.parts > 0;
  c.asymmetric = p.asymmetric && !c.given;
  c.nested = p.maps.is_nested();
  return c;
}

inline Launch in_registers_launch(const Params& p, int x_bytes) {
  const Config c = in_registers_config(p, x_bytes);
  const int64_t tiles = p.tiles.row_tiles * p.tiles.col_tiles;
  return {c, div_ceil(tiles, int64_t(c.threads / c.group))};
}

inline std::string_view in_registers_problem(const Params& p, int x_bytes) {
  if (p.x_step != 1 || p.out_step != 1) return "the last axis must have stride 1";
  if (p.tiles.tile_rows == kBlock && vector_of(p, true, x_bytes) == 1)
    return "rows must begin at multiples of 16 bytes and be whole 16-byte accesses";
  const int64_t longest =
      vector_of(p, true, x_bytes) == 1 ? kLongestUnaligned : kLongestRegisterRow;
  if (p.tiles.tile_cols > longest)
    return "rows of more than 32768 elements, or 4096 unaligned ones, do not fit the registers";
  if (p.tiles.row_tiles > op::kMaxBlocks / std::max<int64_t>(p.tiles.col_tiles, 1))
    return "more than 2^31 - 1 scales";
  return "";
}

// `flat` parameters.
inline std::string_view flat_problem(const Params& p, int x_bytes) {
  if (vector_of(p, true, x_bytes) == 1)
    return "the tensor must begin at a multiple of 16 bytes and be whole 16-byte accesses";
  return "";
}

// The first of two launches; its Config does not depend on the device.
inline Launch amax_launch(const Params& p, int x_bytes, int num_sms) {
  constexpr int kBlocksPerSm = 2;
  const int vector = vector_of(p, true, x_bytes);
  const int64_t part = int64_t(kThreads) * kAmaxSlots * vector;
  return {{.threads = kThreads, .vector = vector, .slots = kAmaxSlots, .asymmetric = p.asymmetric},
          std::min(div_ceil(p.tiles.cols, part), int64_t(kBlocksPerSm) * num_sms)};
}

inline Launch dequantize_naive_launch(const Params& p) {
  return {{.threads = kThreads, .nested = p.maps.is_nested()},
          div_ceil(p.tiles.rows * p.tiles.cols, int64_t(kThreads))};
}

inline Launch dequantize_vectorized_launch(const Params& p, int out_bytes) {
  Config c{.threads = kThreads, .vector = vector_of(p, false, out_bytes), .slots = 4};
  const auto units = div_ceil(p.tiles.cols, int64_t(c.vector) * c.slots);
  c.group = int(std::min<uint64_t>(std::bit_ceil(uint64_t(units)), kThreads));
  c.nested = p.maps.is_nested();
  const int64_t tiles = div_ceil(p.tiles.cols, int64_t(c.group) * c.vector * c.slots);
  return {c, div_ceil(p.tiles.rows, int64_t(c.threads / c.group)) * tiles};
}

inline std::string_view dequantize_vectorized_problem(const Params& p, int out_bytes) {
  if (p.x_step != 1 || p.out_step != 1) return "the last axis must have stride 1";
  if (vector_of(p, false, out_bytes) == 1)
    return "rows must begin at multiples of 16 bytes and be whole 16-byte accesses";
  if (p.tiles.rows > op::kMaxBlocks / (p.tiles.cols / 1024 + 1)) return "more than 2^31 - 1 blocks";
  return "";
}

}  // namespace tensorcraft::kernel::quantize

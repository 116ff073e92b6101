// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/row_plan.h"
#include "tensorcraft/ops/quantize/params.h"

#include <string_view>

// Which tiles share a scale, and how each rung is chosen and started; host only.
namespace tensorcraft::kernel::quantize {

using Start = op::Start<Config>;
using Choice = op::Choice<Config>;
using CallParams = Nested<Params>;

// Facts of a call that Params do not hold.
struct Given {
  int wide_bytes;              // of an element that is no code, one of x or, of dequantize, of out
  bool dequantizes = false;    // x holds the codes
  bool whole_tensor = false;   // one scale for all of x
  bool is_contiguous = false;  // x and out are
};

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

// Rows of x and out one behind another.
inline CallParams contiguous_params(const void* x, void* out, float* scales, const Tiles& tiles) {
  const RowMap rows = op::contiguous_rows(tiles.rows, tiles.cols);
  return with_maps(
      Params{.x_step = 1, .out_step = 1, .x = x, .out = out, .scales = scales, .tiles = tiles},
      rows, rows);
}

// Elements of one access, 16 bytes of the wider type; a code has one byte. 1 if a row cannot be
// divided into such accesses.
inline int vector_of(const CallParams& p, const Given& given) {
  const int vector = 16 / given.wide_bytes;
  const void* wide = given.dequantizes ? p.out : p.x;
  const void* codes = given.dequantizes ? p.x : p.out;
  const RowMap& wide_rows = p.maps[given.dequantizes ? Params::kOut : Params::kX];
  const RowMap& code_rows = p.maps[given.dequantizes ? Params::kX : Params::kOut];
  if (p.tiles.cols % vector || !op::rows_vector_aligned(wide, wide_rows, given.wide_bytes))
    return 1;
  if (reinterpret_cast<uintptr_t>(codes) % size_t(vector)) return 1;
  for (int i = 0; i < code_rows.axes; ++i)
    if (code_rows.stride[i] % vector) return 1;
  return vector;
}

inline Choice naive(const CallParams& p, const Given&, const op::Gpu&) {
  return Start{{.threads = kThreads, .nested = p.is_nested()},
               std::min(p.tiles.row_tiles * p.tiles.col_tiles, op::kMaxBlocks)};
}

// Rows beyond op::kMaxRegisterRow are divided over more threads, 64 elements each.
inline constexpr int kLongRowThreads = 512;
inline constexpr int64_t kLongestRegisterRow = 64 * int64_t(kLongRowThreads);
// Single accesses of longer rows are too much code.
inline constexpr int64_t kLongestUnaligned = 4096;

// What in_registers is given: a contiguous tensor with one scale becomes parts that its blocks hold
// in registers.
inline constexpr int kFlatSlots = 4, kAmaxSlots = 8;
inline void flatten(CallParams& p, const Given& given, const op::Gpu&) {
  if (!given.whole_tensor) return;
  const int64_t size = p.tiles.rows * p.tiles.cols;
  const int64_t part = int64_t(kThreads) * kFlatSlots * 16 / given.wide_bytes;
  const int64_t parts = div_ceil(size, part);
  p.tiles = {1, size, 1, 1, part, 1, 1, parts, 0, 0, 0, divider_by(parts)};
  p.x_step = p.out_step = 1;
  p.set_map(Params::kX, {});
  p.set_map(Params::kOut, {});
}

// Takes flattened parameters.
inline Start registers_start(const CallParams& p, const Given& given) {
  const int vector = vector_of(p, given);
  Config c{.threads = kThreads, .vector = vector};
  if (p.tiles.tile_rows == kBlock) {
    c.slots = int(kBlock * kBlock) / (c.group * vector);
    c.tile_rows = int(kBlock);
  } else if (given.whole_tensor) {
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
  c.nested = p.is_nested();
  return {c, div_ceil(p.tiles.row_tiles * p.tiles.col_tiles, int64_t(c.threads / c.group))};
}

// Why a whole tensor cannot be flattened, or empty.
inline std::string_view flat_refusal(const CallParams& flat, const Given& given) {
  if (!given.is_contiguous) return "x and out must be contiguous";
  if (vector_of(flat, given) == 1)
    return "the tensor must begin at a multiple of 16 bytes and be whole 16-byte accesses";
  return "";
}

// Why tiles do not fit registers, or empty.
inline std::string_view tiles_refusal(const CallParams& p, const Given& given) {
  const int vector = vector_of(p, given);
  if (p.x_step != 1 || p.out_step != 1) return "the last axis must have stride 1";
  if (p.tiles.tile_rows == kBlock && vector == 1)
    return "rows must begin at multiples of 16 bytes and be whole 16-byte accesses";
  if (p.tiles.tile_cols > (vector == 1 ? kLongestUnaligned : kLongestRegisterRow))
    return "rows of more than 32768 elements, or 4096 unaligned ones, do not fit the registers";
  if (p.tiles.row_tiles > op::kMaxBlocks / std::max<int64_t>(p.tiles.col_tiles, 1))
    return "more than 2^31 - 1 scales";
  return "";
}

inline Choice in_registers(const CallParams& call, const Given& given, const op::Gpu& gpu) {
  CallParams p = call;
  flatten(p, given, gpu);
  if (given.whole_tensor && !p.given)
    return op::refuse("the scale of a whole tensor takes a launch of its own");
  const auto why = given.whole_tensor ? flat_refusal(p, given) : tiles_refusal(p, given);
  if (!why.empty()) return op::refuse(why);
  return registers_start(p, given);
}

// The first of two launches; its Config does not depend on the device. Takes flattened parameters.
inline Start amax_start(const CallParams& p, const Given& given, const op::Gpu& gpu) {
  constexpr int kBlocksPerSm = 2;
  const int vector = vector_of(p, given);
  const int64_t part = int64_t(kThreads) * kAmaxSlots * vector;
  return {{.threads = kThreads, .vector = vector, .slots = kAmaxSlots, .asymmetric = p.asymmetric},
          std::min(div_ceil(p.tiles.cols, part), int64_t(kBlocksPerSm) * gpu.num_sms)};
}

inline Choice two_launches(const CallParams& call, const Given& given, const op::Gpu& gpu) {
  if (!given.whole_tensor || call.given)
    return op::refuse("is for one scale that must be computed");
  CallParams p = call;
  flatten(p, given, gpu);
  if (const auto why = flat_refusal(p, given); !why.empty()) return op::refuse(why);
  return amax_start(p, given, gpu);
}

// Both launches of two_launches know how many blocks the first has.
inline void set_parts(CallParams& p, const Given& given, const op::Gpu& gpu) {
  flatten(p, given, gpu);
  p.parts = amax_start(p, given, gpu).blocks;
}

inline Choice dequantize_naive(const CallParams& p, const Given&, const op::Gpu&) {
  return Start{{.threads = kThreads, .nested = p.is_nested()},
               div_ceil(p.tiles.rows * p.tiles.cols, int64_t(kThreads))};
}

inline Choice dequantize_vectorized(const CallParams& p, const Given& given, const op::Gpu&) {
  Config c{.threads = kThreads, .vector = vector_of(p, given), .slots = 4};
  if (p.x_step != 1 || p.out_step != 1) return op::refuse("the last axis must have stride 1");
  if (c.vector == 1)
    return op::refuse("rows must begin at multiples of 16 bytes and be whole 16-byte accesses");
  if (p.tiles.rows > op::kMaxBlocks / (p.tiles.cols / 1024 + 1))
    return op::refuse("more than 2^31 - 1 blocks");
  const auto units = div_ceil(p.tiles.cols, int64_t(c.vector) * c.slots);
  c.group = int(std::min<uint64_t>(std::bit_ceil(uint64_t(units)), kThreads));
  c.nested = p.is_nested();
  const int64_t tiles = div_ceil(p.tiles.cols, int64_t(c.group) * c.vector * c.slots);
  return Start{c, div_ceil(p.tiles.rows, int64_t(c.threads / c.group)) * tiles};
}

inline constexpr op::Rung<CallParams, Given, Config> kQuantizeRungs[] = {
    {.name = "in_registers",
     .file = "01_in_registers.cuh",
     .idea = "what shares a scale stays in registers: one read, one write",
     .choose = in_registers,
     .spills = "rows above 16384 elements need the registers of 512 threads",
     .adapt = flatten},
    {.name = "two_launches",
     .file = "amax.cuh",
     .idea = "the range of the whole tensor first, then its quantisation",
     .choose = two_launches,
     .kernel = "amax",
     .adapt = set_parts},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one block for what shares a scale, any strides",
     .choose = naive,
     .general = op::with_nested<Config>},
};

inline constexpr op::Rung<CallParams, Given, Config> kDequantizeRungs[] = {
    {.name = "vectorized",
     .file = "dequantize.cuh",
     .idea = "16-byte accesses, several in flight in each thread",
     .choose = dequantize_vectorized,
     .kernel = "dequantize_vectorized"},
    {.name = "naive",
     .file = "dequantize.cuh",
     .idea = "one thread an element, any strides",
     .choose = dequantize_naive,
     .kernel = "dequantize_naive",
     .general = op::with_nested<Config>},
};
// The rung whose kernel is the second step of two_launches.
inline constexpr std::string_view kSecondStep = "in_registers";

}  // namespace tensorcraft::kernel::quantize

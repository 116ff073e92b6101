// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/key_parts.h"
#include "tensorcraft/device/key_range.h"
#include "tensorcraft/device/ptx/cp_async.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/vec.cuh"

// Keys and values of an AttentionPart (device/attention_part.cuh): in shared memory, and where they
// come from.
namespace tensorcraft {

// The keys or the values of a tile, rows of kDim elements. Lanes that read at the same time read
// chunks of 16 bytes in different banks: a row's chunks are exchanged by a pattern of its number.
template <class Code, int kRows, int kDim>
struct alignas(16) KeyTile {
  static constexpr int kOfChunk = 16 / int(sizeof(Code)), kChunks = kDim / kOfChunk;
  static constexpr int kMask = kChunks % 8 == 0 ? 7 : kChunks % 4 == 0 ? 3 : kChunks % 2 == 0;
  static_assert(kDim % kOfChunk == 0);
  Code data[kRows * kDim];

  // A warp reads 8 rows and 32 neighbours of keys at once, the even or the odd rows of values.
  TC_DEVICE static int key_pattern(int row) {
    return (sizeof(Code) == 2 ? row % 2 * 4 : row % 4 * 2) & kMask;
  }
  TC_DEVICE static int value_pattern(int row) { return row & 6 & kMask; }
  TC_DEVICE const Code* at(int row, int element, int pattern) const {
    return data + row * kDim + ((element / kOfChunk) ^ pattern) * kOfChunk + element % kOfChunk;
  }
};

// The type as which an AttentionPart multiplies rows of T by codes.
template <class T, class Code, PartShape S>
using PartProduct = Select<sizeof(Code) == 1 && !S.has_key_scales, f16, T>;

template <class Code, PartShape S>
struct PartStage {
  KeyTile<Code, S.keys(), S.head_dim> keys;
  KeyTile<Code, S.keys(), S.value_dim> values;
  float scales[S.has_key_scales ? 2 * S.keys() : 4];  // of keys, then of values
};

// The lanes' registers of mma's A.
template <PartShape S>
using QueryRows = Vec4<uint32_t>[S.row_tiles][S.head_dim / 16][kWarpSize];

template <class Code, PartShape S>
struct PartShared {
  QueryRows<S> query;
  // Registers likewise, of the weights of a warp's keys.
  Vec4<uint32_t> weights[S.row_tiles][S.warps][kWarpSize];
  alignas(16) float top[S.rows()][S.warps];
  float sum[S.warps][S.rows()];
  PartStage<Code, S> stages[S.stages];
};

// Keys, an argument of AttentionPart: how keys and values are found. A step's place is looked up by
// one lane for all.
//   StepPlace look_up(int j) const          of the 16 keys from j on, a multiple of 16
//   const Code *keys, *values               elements
//   int64_t key_row, value_row              elements between rows of a step
// Codes have scales. If they differ by key:
//   const float *key_scales, *value_scales  null: 1
//   int64_t key_scale_row, value_scale_row
// else codes and rows are multiplied as f16, which holds all codes and takes one instruction for
// two of them, and there is
//   float key_scale, value_scale

// Where the 16 keys of a step and their values begin, in elements from those of Keys; of codes
// where their scales do.
struct StepPlace {
  int64_t keys, values, key_scales = 0, value_scales = 0;
};
inline constexpr int64_t kUnreadable = int64_t(1) << 62;  // StepPlace::keys if they cannot be read

// The 16 keys of a step: the first row of a tile that they have, the first key, and which keys the
// call has.
struct StepKeys {
  int row, first;
  KeyRange of_call;
  TC_DEVICE bool has(int i) const { return first + i >= of_call.begin && first + i < of_call.end; }
  TC_DEVICE bool are_all() const { return has(0) && has(kStepKeys - 1); }
};

// How a score becomes a logit.
struct Logits {
  float scale, softcap;
};

// What a warp knows of its keys of a tile. Lane t holds keys 2 (t % 4) and the next of either
// product, of rows t / 4 and t / 4 + 8 of each 16.
template <PartShape S>
struct PartScores {
  float of[S.row_tiles][2][4];
  float of_value[2][2];  // the values' scales
  bool are_readable;
};

template <class Code, PartShape S, class Keys>
TC_DEVICE void take_scales(PartScores<S>& scores, const Keys& keys,
                           const PartStage<Code, S>& stage) {
  for (int n = 0; n < 2; ++n)
    for (int e = 0; e < 2; ++e) {
      const int key =
          int(threadIdx.x) / kWarpSize * kStepKeys + 2 * int(threadIdx.x % 4) + 8 * n + e;
      if (keys.key_scales)
        for (auto& tile : scores.of) {
          tile[n][e] *= stage.scales[key];
          tile[n][2 + e] *= stage.scales[key];
        }
      scores.of_value[n][e] = keys.value_scales ? stage.scales[S.keys() + key] : 1.f;
    }
}

// Starts a warp's copies of 16 rows, `row_stride` elements apart. Those that are no keys become 0,
// and so does what lies behind `length` elements.
template <class Code, int kRows, int kDim, class Pattern>
TC_DEVICE void copy_rows(KeyTile<Code, kRows, kDim>& tile, const StepKeys& step, const Code* from,
                         int64_t row_stride, const Pattern& pattern, int length = kDim) {
  using Tile = KeyTile<Code, kRows, kDim>;
  constexpr int kOfLane = kStepKeys * Tile::kChunks / kWarpSize;
  static_assert(kStepKeys * Tile::kChunks % kWarpSize == 0);
  const int lane = int(threadIdx.x % kWarpSize);
  const auto chunk = [&](int x, const Code* source, bool is_key) {
    const int i = x * kWarpSize + lane, row = i / Tile::kChunks;
    const int element = i % Tile::kChunks * Tile::kOfChunk;
    Code* const to = const_cast<Code*>(tile.at(step.row + row, element, pattern(row)));
    const bool is_there = is_key && element < length;
    ptx::cp_async_cg_16(to, source + element, is_there ? 16 : 0);
  };
  const auto row_of = [&](int x) { return (x * kWarpSize + lane) / Tile::kChunks; };
  if (step.are_all()) {
    const Code* source = from + row_of(0) * row_stride;
    [[maybe_unused]] const int64_t rows_stride = kWarpSize / Tile::kChunks * row_stride;
#pragma unroll 8
    for (int x = 0; x < kOfLane; ++x) {
      chunk(x, source, true);
      if constexpr (kWarpSize % Tile::kChunks == 0)
        source += rows_stride;
      else
        source = from + row_of(x + 1) * row_stride;
    }
  } else {
#pragma unroll 1
    for (int x = 0; x < kOfLane; ++x) chunk(x, from + row_of(x) * row_stride, step.has(row_of(x)));
  }
}
// Starts a warp's copies of one number for each of 16 keys, likewise.
TC_DEVICE void copy_numbers(float* to, const StepKeys& step, const float* from, int64_t stride) {
  const int i = int(threadIdx.x % kWarpSize);
  if (i < kStepKeys) ptx::cp_async_ca_4(to + step.row + i, from + i * stride, step.has(i) ? 4 : 0);
}

}  // namespace tensorcraft

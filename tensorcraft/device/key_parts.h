// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

// Attention of few queries divides the keys of a request into parts for as many blocks, whose
// results a second kernel combines.
namespace tensorcraft {

// The keys of a part of a request that has `keys`: nothing else decides it, so a result does not
// depend on what else is in the batch. Short parts give a short request as many blocks as
// kFewParts.
inline constexpr int kPartKeys = 512, kShortPartKeys = 128, kFewParts = 8;
TC_HOST_DEVICE constexpr int part_keys(int keys) {
  return keys <= kFewParts * kShortPartKeys ? kShortPartKeys : kPartKeys;
}
// The parts of a request that has at most `keys`.
TC_HOST_DEVICE constexpr int most_parts(int64_t keys) {
  if (keys <= kShortPartKeys) return 1;
  if (keys <= kFewParts * kShortPartKeys) return int(div_ceil(keys, int64_t(kShortPartKeys)));
  const int64_t parts = div_ceil(keys, int64_t(kPartKeys));
  return parts < kFewParts ? kFewParts : int(parts);
}

// Parts that are folded one after another are so few that this takes little time. Values of long
// rows are folded in device memory, so they have longer parts: half of a request, at most
// `long_part` keys, but fewer of requests so long that a batch has few. 0: values are not long.
inline constexpr int kMostFolded = 32, kLeastLongPart = 256;
inline constexpr int kLongRequest = 16384, kPartOfLongRequest = 1024;
TC_HOST_DEVICE constexpr int most_long_part(int64_t keys, int long_part) {
  return keys > kLongRequest ? kPartOfLongRequest : long_part;
}
TC_HOST_DEVICE constexpr int folded_part_keys(int keys, int long_part = 0) {
  const int share = round_up(div_ceil(keys, kMostFolded), kShortPartKeys);
  int least = part_keys(keys);
  if (long_part > 0) {
    const int most = most_long_part(keys, long_part);
    least = keys > 2 * most ? most : round_up(div_ceil(keys, 2), kLeastLongPart);
    if (least < kLeastLongPart) least = kLeastLongPart;
  }
  return least > share ? least : share;
}
TC_HOST_DEVICE constexpr int most_folded_parts(int64_t keys, int long_part = 0) {
  int parts = most_parts(keys);
  if (long_part > 0) {
    parts = int(div_ceil(keys, int64_t(most_long_part(keys, long_part))));
    if (parts < 2) parts = keys > kLeastLongPart ? 2 : 1;
  }
  return parts < kMostFolded ? parts : kMostFolded;
}

inline constexpr int kCombinedValues = 128;

// The weights of a row's keys are known by the largest logit and by the sum of the weights relative
// to it. Logits may be so large that the logarithm of the sum is lost beside them.
struct RowSum {
  float top, sum;
};

// The results of parts of some rows, queries of heads: of each row and part its values, and behind
// all values the RowSum.
struct KeyParts {
  float* memory;
  int64_t rows;
  int parts, values;  // of a row; of a part
  int run;            // parts of a block of the first step

  TC_HOST_DEVICE int chunks() const { return int(div_ceil(values, kCombinedValues)); }
  TC_HOST_DEVICE int runs() const { return int(div_ceil(parts, run)); }

  TC_HOST_DEVICE float* values_of(int64_t row, int part) const {
    return memory + (row * parts + part) * values;
  }
  TC_HOST_DEVICE RowSum* sum_of(int64_t row, int part) const {
    return reinterpret_cast<RowSum*>(values_of(rows, 0)) + row * parts + part;
  }
  // A single part is the result.
  TC_HOST_DEVICE int64_t bytes() const {
    return parts == 1 ? 0 : rows * parts * (values + 2) * int64_t(sizeof(float));
  }
};

// The second step adds up the parts of a row, kCombinedValues at a time. They are dealt to kSums
// sums in turn.
inline constexpr int kSums = 8;
struct CombineConfig {
  int threads = 128;
  int row_warps = 1;  // of a chunk of a row: 1, 2 or kSums
  TC_HOST_DEVICE constexpr int rows() const { return threads / 32 / row_warps; }  // of a block
  // A multiprocessor has so many blocks: they wait for memory most of the time.
  TC_HOST_DEVICE constexpr int blocks() const { return 512 / threads; }
};
TC_HOST_DEVICE constexpr CombineConfig combine_config(const KeyParts& parts) {
  if (parts.parts <= kSums) return {};
  const int warps = parts.rows * parts.chunks() < 512 ? kSums : 2;
  return {.threads = 32 * warps, .row_warps = warps};
}

inline constexpr int kStepKeys = 16;  // of a warp at a time
inline constexpr int kTileRows = 16;

// A kernel of parts is compiled for one shape.
struct PartShape {
  int row_tiles;      // of 16 rows
  int warps, stages;  // stages: tiles of kStepKeys keys a warp, and of values, in shared memory
  int head_dim;       // a multiple of 32
  int value_dim;      // of this block, a multiple of 64
  bool has_softcap;
  bool has_key_scales = false;  // codes are multiplied by numbers that differ by key
  bool is_padded = false;       // rows in memory are shorter: RowLengths
  int blocks = 0;  // of the plan alone: a multiprocessor of sm_90 has registers and memory for them
  TC_HOST_DEVICE constexpr int rows() const { return kTileRows * row_tiles; }
  TC_HOST_DEVICE constexpr int keys() const { return kStepKeys * warps; }
};

// How long rows of keys, and those of a block's values from its slice on, are in memory: multiples
// of 16 bytes.
struct RowLengths {
  int head_dim, value_dim;
};

// Bytes of shared memory: the queries, what the warps find of a row, the weights of a tile, and the
// stages. The scales of codes lie beside them.
TC_HOST_DEVICE constexpr int part_shared_bytes(const PartShape& s, int code_bytes) {
  const int scales = s.has_key_scales ? 8 * s.keys() : 16;
  const int stage = s.keys() * (s.head_dim + s.value_dim) * code_bytes + scales;
  const int found = 2 * s.warps * s.rows() * 4, weights = s.rows() * s.keys() * 2;
  return s.rows() * s.head_dim * 2 + found + weights + s.stages * stage;
}

// The values of a block: a divisor of all, or the shortest slice that covers them.
TC_HOST_DEVICE constexpr int padded_slice(int v_dim) {
  if (v_dim % 64 == 0) return v_dim % 256 == 0 ? 256 : v_dim % 128 == 0 ? 128 : 64;
  return v_dim < 64 ? 64 : v_dim < 128 ? 128 : 256;
}

// The shape for a call whose requests have `rows` rows for a head of keys: as many stages as leave
// room for `blocks`, and fewer warps if two stages do not, or a GPU has not the memory. Codes keep
// a warp busy with conversions, so that more of them are needed. 64 rows of long keys would leave
// two warps, whose sums the registers do not hold.
TC_HOST_DEVICE constexpr PartShape part_shape(int64_t rows, int head_dim, int v_dim, int code_bytes,
                                              bool has_softcap, bool has_key_scales,
                                              int64_t shared_bytes_per_block) {
  const bool is_padded = head_dim % 32 != 0 || v_dim % 64 != 0;
  const int value_dim = padded_slice(v_dim);
  const bool is_wide = value_dim == 256;  // its sums fill the registers
  PartShape s{.row_tiles = rows <= kTileRows || is_wide              ? 1
                           : rows <= 2 * kTileRows || head_dim > 128 ? 2
                                                                     : 4,
              .warps = 4,
              .stages = 6,
              .head_dim = round_up(head_dim, 32),
              .value_dim = value_dim,
              .has_softcap = has_softcap,
              .has_key_scales = has_key_scales,
              .is_padded = is_padded,
              .blocks = is_wide ? 3 : 2};
  const auto exceeds = [&](int64_t bytes) { return part_shared_bytes(s, code_bytes) > bytes; };
  if (code_bytes == 1 && s.row_tiles == 1 && !is_wide) s.blocks = 4;
  const int64_t room = shared_bytes_per_block ? shared_bytes_per_block : int64_t(227) << 10;
  const int budget = (228 << 10) / s.blocks - 1024;
  while (s.stages > 2 && (exceeds(budget) || exceeds(room))) --s.stages;
  if (exceeds(budget)) s.warps = 2;
  while (s.warps > 1 && exceeds(room)) s.warps /= 2;
  return s;
}

// How the first step is divided into blocks.
struct PartSplit {
  PartShape shape;
  int run;         // KeyParts::run
  int64_t blocks;  // runs by slices of the values by tiles of rows by heads of keys by requests
};
// `lines`: heads of keys of all requests, each with `rows` rows and at most `keys` keys. If there
// is room for a block a part, each gets its own. Else blocks wait for memory, which short ones keep
// busiest, unless long ones fit at once and leave few multiprocessors idle. But products bound
// blocks of more than 16 rows, and conversions those of codes: they run in rounds of as many as
// there is room for, and what a block does once, while it multiplies nothing, takes a fifth of the
// time of a part.
TC_HOST_DEVICE constexpr PartSplit part_split(const PartShape& shape, int64_t lines, int64_t rows,
                                              int64_t keys, int v_dim, int code_bytes,
                                              int num_sms) {
  const int64_t of_run =
      lines * div_ceil(rows, int64_t(shape.rows())) * div_ceil(v_dim, shape.value_dim);
  const int64_t slots = int64_t(num_sms) * shape.blocks;
  const int64_t parts = div_ceil(keys, int64_t(part_keys(int(keys))));  // of the longest request
  const bool waits = shape.row_tiles == 1 && code_bytes == 2;
  const auto blocks_of = [&](int run) { return of_run * div_ceil(parts, int64_t(run)); };
  int best = 1;
  if (slots > 0 && blocks_of(1) > slots) {
    if (waits) best = kPartKeys / part_keys(int(keys));
    int64_t least = 0;
    for (int run = 1; run <= parts && run <= 64; ++run) {
      const int64_t blocks = blocks_of(run);
      if (waits && (blocks > slots || 8 * blocks < 7 * slots)) continue;
      const int64_t time = div_ceil(blocks, slots) * (5 * run + 1);
      if (least == 0 || time < least) {
        best = run;
        least = time;
      }
    }
  }
  return {shape, best, of_run * div_ceil(most_parts(keys), best)};
}

}  // namespace tensorcraft

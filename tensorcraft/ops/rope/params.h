// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/divider.h"
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::rope {

// Which elements of a head make a pair: (i, i + D/2), or (2i, 2i + 1).
enum class Style : int { half, interleaved };

// The heads of x or of k: at each token `heads` of D elements. No heads: not given.
struct Heads {
  const void* in;
  void* out;
  int64_t heads;
  int64_t in_head, out_head, in_step, out_step;  // strides
};

// Run time. cos and sin are null if the angles are computed.
struct Params {
  enum { kX, kXOut, kK, kKOut, kPositions, kTensors };  // rows are the tokens of each
  int64_t cos_step, sin_step;
  double log2_step;  // -2 log2(base) / D: the frequency of pair i is 2^(i * log2_step)
  double ratio;      // 2^log2_step: the frequency of a pair over that of the one before
  Heads x, k;
  const void* positions;  // null: start_pos + the index of the token in its sequence
  const void *cos, *sin;  // [max_seq, half]
  int64_t cos_row, sin_row;
  int64_t tokens, seq, max_seq, start_pos;
  Divider by_seq;          // vectorized, whose tokens 31 bits count
  int32_t half;            // D / 2
  int32_t wide_positions;  // they are int64_t, not int32_t
  int64_t step[kTensors];  // strides of tokens
};

struct Config {
  Style style;
  int threads = 256;
  int lanes = 1;   // threads next to each other in a head
  int heads = 1;   // heads of a token that are worked on side by side
  int unroll = 2;  // heads of a thread that are in flight
  int has_cache = 0;
  int nested = 0;  // the tokens of a tensor lie along more than one axis
};

// Run time of rope_cache: out[0] = cos and out[1] = sin of the angle of each position and pair.
struct CacheParams {
  const void* positions;
  void* out;
  int64_t count;
  int64_t out_half, out_row, out_step;  // strides
  double log2_step;
  RowMap position_map;
  int32_t wide_positions;
  int32_t half;
};

struct CacheConfig {
  int threads = 256;
};

}  // namespace tensorcraft::kernel::rope

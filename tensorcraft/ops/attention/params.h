// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"
#include "tensorcraft/device/tensor_map.h"
#include "tensorcraft/device/warpgroup.h"

namespace tensorcraft::kernel::attention {

inline constexpr int kMaxHeadDim = 256;

// Elements between neighbours; the innermost dimension has stride 1.
struct Strides {
  int64_t batch, head, row;
};

// q and out are [batch, heads, seq_q, d], k and v [batch, heads / group, seq_k, d], in any order of
// the outer dimensions.
struct Params {
  const void *q, *k, *v;
  void* out;
  float* lse;               // [batch, heads, seq_q], contiguous; null: not wanted
  const void* key_lengths;  // [batch], int32 or int64; null: every key counts
  Strides q_strides, k_strides, v_strides, out_strides;
  int32_t batch, heads, group, seq_q, seq_k, head_dim;
  int32_t causal;
  int32_t wide_lengths;  // key_lengths are int64
  float scale;
};

struct Config {
  int head_dim = 0;  // 0: any, read from Params
  int block_m = 0;   // queries of a block
  int block_n = 0;   // keys of a tile
  int threads = 128;
  // From wgmma on:
  int stages = 0;       // tiles of keys, and of values, in shared memory
  int consumers = 0;    // warpgroups of 64 queries each
  int takes_turns = 0;  // they start their products one after another
  int out_tile = 0;     // the output leaves from memory of its own, not from that of the queries
};

// What the rungs from wgmma on are given besides: how the copy engine finds 64 elements of a row,
// rows, head and batch.
struct HopperParams : Params {
  TensorMap q_map, k_map, v_map, out_map;
  // Of persistent: works that blocks have taken after their first; 0 before and after.
  uint32_t* taken;
  int32_t section;  // heads whose works follow each other by their queries
};

// Bytes of dynamic shared memory that a rung lays out.
TC_HOST_DEVICE constexpr int tiled_shared_bytes(const Config& c) {
  const int rows = (c.block_m + 2 * c.block_n) * (c.head_dim + 4);
  return 4 * (rows + c.block_m * (c.block_n + 4));
}
TC_HOST_DEVICE constexpr int tensor_core_shared_bytes(const Config& c) {
  return 2 * (c.block_m + 4 * c.block_n) * c.head_dim;
}
// Rows of whole boxes of 128 bytes, and barriers.
TC_HOST_DEVICE constexpr int boxed_dim(const Config& c) { return round_up(c.head_dim, 64); }
TC_HOST_DEVICE constexpr int ring_shared_bytes(const Config& c) {
  const int rows = c.block_m * (1 + c.out_tile) + 2 * c.stages * c.block_n;
  return round_up(2 * rows * boxed_dim(c) + (4 * c.stages + 3) * 8, 1024);
}

// The keys that one (batch, head) may see: all of them, or the first key_lengths[b].
TC_HOST_DEVICE int visible_keys(const Params& p, int b) {
  if (!p.key_lengths) return p.seq_k;
  const int64_t n = p.wide_lengths ? static_cast<const int64_t*>(p.key_lengths)[b]
                                   : static_cast<const int32_t*>(p.key_lengths)[b];
  return n < 0 ? 0 : n < p.seq_k ? int(n) : p.seq_k;
}

// Keys [0, limit) are what query i sees of `keys` visible ones. Causal is aligned to the end of
// those in use: the last query sees the last of them.
TC_HOST_DEVICE int key_limit(const Params& p, int keys, int i) {
  if (!p.causal) return keys;
  const int end = keys - p.seq_q + i + 1;
  return end < 0 ? 0 : end < keys ? end : keys;
}

}  // namespace tensorcraft::kernel::attention

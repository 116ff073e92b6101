// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/attention/params.h"
#include "tensorcraft/device/key_parts.h"
#include "tensorcraft/device/key_range.h"
#include "tensorcraft/device/tree_mask.h"

namespace tensorcraft::kernel::paged_attention {

inline constexpr int kMaxHeadDim = 576, kMaxValueDim = 512;

// Elements between neighbours. Of a ragged batch a row is a token and batch is 0.
struct Strides {
  int64_t batch, row, head, step;
};

// A paged cache of keys or of values. Strides count elements.
struct Cache {
  const void* data;
  const float* scale;  // what codes are multiplied by; null: 1
  int64_t block, row, head, step;
  int64_t scale_block, scale_row, scale_head;  // 0: one number; scale_head alone: one a head
  TC_HOST_DEVICE bool has_key_scales() const { return scale && (scale_block || scale_row); }
};

struct Params {
  const void* q;
  const void* q_pe;  // elements of queries behind those of q; null: q has all
  void* out;
  float* lse;          // a number for each token and head, contiguous; null: not wanted
  const float* sinks;  // a logit for each head, contiguous; null: none
  const void *tables, *lengths;
  const void* starts;  // of a ragged batch: where each request's tokens begin, batch + 1; else null
  const uint8_t* causal_each;  // a bool for each request; null: `window` is that of all
  float* parts;                // in the workspace: the memory of key_parts() or folded_parts()
  TreeMask tree;
  Strides q_strides, q_pe_strides, out_strides;
  Cache k, v;
  Cache k_pe;  // elements of keys behind those of k, with its scale; data null: k has all
  int64_t table_row, table_step, lengths_step, starts_step;
  int64_t tokens;          // rows of queries in all
  int64_t blocks;          // of the cache
  int32_t batch, queries;  // queries of a request; of a ragged batch 0
  int32_t heads, group;    // group: heads of q for each head of k
  int32_t head_dim, v_dim;
  int32_t q_dim, k_dim;  // elements in q and in k: head_dim, unless q_pe or k_pe have the others
  int32_t has_rows;      // the cache has rows of device/latent_row.h
  int32_t block_size, table_size;                  // rows of a block, blocks of a request at most
  int32_t wide_tables, wide_lengths, wide_starts;  // they are int64
  Window window;                                   // of requests that are not causal
  float scale, softcap;                            // softcap 0: none
  int32_t part_run;                                // KeyParts::run of the rungs that split keys
};

struct Config {
  int threads = 128;
  int head_dim = 0;
  int value_dim = 0;  // values of a block
  int has_softcap = 0;
  int stages = 0;          // tiles of keys, and of values, in shared memory
  int row_tiles = 0;       // split_kv, packed: of 16 rows
  int has_key_scales = 0;  // split_kv, packed: codes are multiplied by numbers that differ by key
  int padded = 0;          // split_kv, packed: rows in memory are shorter than those of tiles
  int has_tree = 0;        // above naive
  int has_pe = 0;          // naive: elements of queries, of keys or of both lie in two arrays
  // persistent, as attention_tiles::Config has them, but for the last:
  int block_m = 0, block_n = 0;
  int takes_turns = 0;
  int out_tile = 0;
  int scaled = 0;
  int packed = 0;
  int box_rows = 0;  // keys of a copy, all of one block of the cache
  int parts = 0;     // split_wgmma, latent_wgmma: attention_tiles::kWritten or kFolded
};

// The second step of split_kv.
using CombineConfig = tensorcraft::CombineConfig;

// The second step of split_wgmma and latent_wgmma: a warp for kCombinedValues values of a row.
struct FoldConfig {
  int threads = 128;
  int queries = 0;    // of a tile of the first step
  int values = 0;     // of a part
  int long_part = 0;  // as folded_part_keys() takes it
};

// split_kv: what its parts give, as many as a table has room for.
TC_HOST_DEVICE int parts_of(const Params& p) {
  return most_parts(int64_t(p.block_size) * p.table_size);
}
TC_HOST_DEVICE KeyParts key_parts(const Params& p) {
  return {p.parts, p.tokens * p.heads, parts_of(p), p.v_dim, p.part_run};
}

// split_wgmma and latent_wgmma write rows of a tile, which have `values`.
TC_HOST_DEVICE constexpr bool are_long(int values) { return values > attention_tiles::kMostValues; }
TC_HOST_DEVICE KeyParts folded_parts(const Params& p, int values, int long_part) {
  const int parts = most_folded_parts(int64_t(p.block_size) * p.table_size, long_part);
  return {p.parts, p.tokens * p.heads, parts, values, 1};
}

// Queries of one request.
struct Request {
  int64_t first;  // token
  int32_t queries, keys;
  Window window;
};
TC_HOST_DEVICE Window window_of_request(const Params& p, int64_t b) {
  const bool is_causal = p.causal_each && p.causal_each[b];
  return {p.window.left, is_causal ? 0 : p.window.right};
}

// The keys that query i of a request sees, but for those that a tree hides.
TC_HOST_DEVICE KeyRange keys_of(const Request& r, int i) {
  return keys_of(r.window, r.keys, place_of_query(r.queries, r.keys, i));
}
// The tree's row of query i of request b.
TC_HOST_DEVICE TreeRow tree_row(const Params& p, int64_t b, const Request& r, int i) {
  const int64_t at = b * p.tree.batch + ((p.starts ? r.first : 0) + i) * p.tree.row;
  return {p.tree, at, r.keys - r.queries};
}

// Attention over requests, each of which has as many keys as a row of the table has room for, of
// which `lengths` are in use, and where those lie. The maps of keys and values have rows of a
// block, heads and blocks; those of queries and outputs heads, tokens and, if it is not ragged,
// requests.
struct HopperParams {
  attention_tiles::HopperParams attention;
  Params pages;
};

// The tiles of a Config, as attention has them; `by_row`: of queries of bfloat16 beside codes.
TC_HOST_DEVICE constexpr int consumers_of(const Config& c) {
  return c.block_m / kGroupRows * (are_long(c.value_dim) ? 3 : 1);
}
TC_HOST_DEVICE constexpr attention_tiles::Config tile_config(const Config& c, bool by_row = false) {
  return {.head_dim = c.head_dim,
          .block_m = c.block_m,
          .block_n = c.block_n,
          .threads = c.threads,
          .options = c.has_softcap ? attention_tiles::kSoftcap : attention_tiles::kRanges,
          .value_dim = c.value_dim,
          .stages = c.stages,
          .consumers = consumers_of(c),
          .takes_turns = c.takes_turns,
          .out_tile = c.out_tile,
          .scaled = by_row ? attention_tiles::kByRow : c.scaled,
          .packed = c.packed,
          .has_tree = c.has_tree,
          .parts = c.parts};
}

// The warpgroups of persistent that copy: one, or of codes one for keys and one for values.
TC_HOST_DEVICE constexpr int producers_of(const Config& c) {
  return c.threads / kWarpgroup - consumers_of(c);
}
// Bytes of dynamic shared memory of persistent: the ring, the parts that are folded, and if the
// cache has codes of 8 bits two tiles of them for each of those warpgroups, a barrier for each tile
// and the work.
TC_HOST_DEVICE constexpr int staged_bytes(const Config& c) {
  return round_up(
      producers_of(c) * (2 * (c.block_n * c.head_dim + 8) + attention_tiles::kWorkBytes), 1024);
}
TC_HOST_DEVICE constexpr int persistent_shared_bytes(const Config& c, int code_bytes) {
  const int folded = are_long(c.value_dim) ? 0 : attention_tiles::folded_bytes(tile_config(c));
  return attention_tiles::ring_shared_bytes(tile_config(c)) + folded +
         (code_bytes == 1 ? staged_bytes(c) : 0);
}

}  // namespace tensorcraft::kernel::paged_attention

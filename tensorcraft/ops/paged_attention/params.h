// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

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
  int64_t scale_block, scale_row, scale_head;  // 0: one number
};

struct Params {
  const void* q;
  void* out;
  float* lse;          // a number for each token and head, contiguous; null: not wanted
  const float* sinks;  // a logit for each head, contiguous; null: none
  const void *tables, *lengths;
  const void* starts;  // of a ragged batch: where each request's tokens begin, batch + 1; else null
  float* parts;        // split_kv, in the workspace: each part's values, then its lse
  Strides q_strides, out_strides;
  Cache k, v;
  int64_t table_row, table_step, lengths_step, starts_step;
  int64_t tokens;          // rows of queries in all
  int64_t blocks;          // of the cache
  int32_t batch, queries;  // queries of a request; of a ragged batch 0
  int32_t heads, group;    // group: heads of q for each head of k
  int32_t head_dim, v_dim;
  int32_t block_size, table_size;                  // rows of a block, blocks of a request at most
  int32_t wide_tables, wide_lengths, wide_starts;  // they are int64
  int32_t causal, left, right;                     // left, right: of the window; -1 is unlimited
  float scale, softcap;                            // softcap 0: none
};

struct Config {
  int threads = 128;
  int head_dim = 0;     // split_kv
  int value_dim = 0;    // split_kv: values of a block
  int has_softcap = 0;  // split_kv
};

// The second step of split_kv.
struct CombineConfig {
  int threads = 128;
};

// split_kv: the keys of a part. It is the same for all calls, so a result does not depend on what
// else is in the batch.
inline constexpr int kPartKeys = 512;

// How many parts a table has room for.
TC_HOST_DEVICE int parts_of(const Params& p) {
  return int(div_ceil(int64_t(p.block_size) * p.table_size, int64_t(kPartKeys)));
}

// Where the values of a part of a row begin, a query of a head; the lse are behind all values.
TC_HOST_DEVICE float* values_of_part(const Params& p, int64_t row, int part) {
  return p.parts + (row * parts_of(p) + part) * p.v_dim;
}
TC_HOST_DEVICE float* lse_of_part(const Params& p, int64_t row, int part) {
  return values_of_part(p, p.tokens * p.heads, 0) + row * parts_of(p) + part;
}

// Queries of one request.
struct Request {
  int64_t first;  // token
  int32_t queries, keys;
};

// Keys [begin, end) are what a query sees.
struct KeyRange {
  int begin, end;
};

// Query i of a request stands at key i + keys - queries: the queries are the newest tokens.
TC_HOST_DEVICE KeyRange keys_of(const Params& p, const Request& r, int i) {
  const int64_t at = int64_t(i) + r.keys - r.queries;
  int64_t begin = p.left < 0 ? 0 : at - p.left, end = r.keys;
  if (p.causal && at + 1 < end) end = at + 1;
  if (p.right >= 0 && at + p.right + 1 < end) end = at + p.right + 1;
  begin = begin < 0 ? 0 : begin < r.keys ? begin : r.keys;
  return {int(begin), int(end < begin ? begin : end)};
}

}  // namespace tensorcraft::kernel::paged_attention

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/index.h"
#include "tensorcraft/device/key_range.h"
#include "tensorcraft/device/tensor_map.h"
#include "tensorcraft/device/warpgroup.h"

namespace tensorcraft::kernel::mqa_logits {

// Whole numbers in device memory, int64_t if `wide`, else int32_t. Null: not given.
struct Integers {
  const void* data;
  int64_t batch, step;
  int32_t wide;

  TC_HOST_DEVICE int64_t at(int64_t b, int64_t i) const {
    return integer_at(data, b * batch + i * step, wide);
  }
};

// Elements between neighbours.
struct QueryStrides {
  int64_t batch, row, head, step;
};
struct KeyStrides {
  int64_t block, row, step;
};

// Run time. Without pages there is one request, whose keys are the one block.
struct Params {
  const void *q, *k;
  const float *weights, *k_scale;  // k_scale null: 1
  float* out;
  QueryStrides q_strides, weights_strides, out_strides;  // step of weights: 0; head of out: 0
  KeyStrides k_strides, scale_strides;
  Integers starts, ends, tables, lengths;
  int64_t blocks;                 // of k
  int32_t batch, queries, heads;  // queries of a request
  int32_t head_dim, keys;         // keys: columns of out
  int32_t block_size;             // keys of a block
  // Above naive: queries of a block of threads, such of a request, keys of a block of threads.
  int32_t rows_of_block, row_tiles, keys_of_block;
};

struct Config {
  int threads = 256;
  int spans = 0;  // tensor_core: head_dim in steps of 32, rounded up
  // wgmma:
  int head_dim = 0;  // rounded up to steps of 32 bytes
  int heads = 0;     // of a query, with those that fill it up
  int queries = 0;   // of a product
  int products = 0;  // of each tile of keys, by other queries of the block
  int stages = 0;    // of 64 keys
  int filled = 0;    // a query has fewer than `heads`
};

// Run time of wgmma.
struct WgmmaParams {
  Params call;
  TensorMap q_map, k_map;
  int32_t box_rows;  // keys of a box of k_map, which all lie in one block
};

// tensor_core: the keys that a warp holds, so that they leave registers for the rest, and the
// 16-byte words of a query's heads.
TC_HOST_DEVICE constexpr int keys_of_warp(int spans) { return spans <= 4 ? 32 : 16; }
TC_HOST_DEVICE constexpr int64_t words_of_query(int64_t heads, int spans) {
  return (heads + 7) / 8 * spans * 32;
}

// wgmma: warpgroups that multiply, 64 keys each; queries of a block; bytes of a line of a tile,
// which are whole boxes of 128; and of shared memory, which ends with weights and 1024 for the
// rest.
inline constexpr int kConsumers = 2;
TC_HOST_DEVICE constexpr int rows_of(const Config& c) { return c.products * c.queries; }
TC_HOST_DEVICE constexpr int line_bytes(int head_dim, int element_bytes) {
  return (head_dim * element_bytes + 127) / 128 * 128;
}
TC_HOST_DEVICE constexpr int ring_bytes(const Config& c, int element_bytes) {
  const int columns = rows_of(c) * c.heads;
  return line_bytes(c.head_dim, element_bytes) * (columns + c.stages * kGroupRows) +
         (columns * 4 + 1023) / 1024 * 1024 + 1024;
}

// Keys in use of request b: those that its table has room for at most.
TC_HOST_DEVICE int length_of(const Params& p, int64_t b) {
  return p.lengths.data ? clamped(p.lengths.at(b, 0), 0, p.keys) : p.keys;
}

// The keys that query i of request b sees.
TC_HOST_DEVICE KeyRange keys_of(const Params& p, int64_t b, int64_t i) {
  const int length = length_of(p, b);
  const int begin = p.starts.data ? clamped(p.starts.at(b, i), 0, length) : 0;
  const int64_t end = p.ends.data     ? p.ends.at(b, i)
                      : p.tables.data ? i + length - p.queries + 1
                                      : int64_t(length);
  return {begin, clamped(end, begin, length)};
}

// Where key j of request b lies: a block of k, of which the table may name one that is not there,
// and a row of it.
struct KeyPlace {
  int64_t block, row;
};
TC_HOST_DEVICE KeyPlace place_of(const Params& p, int64_t b, int j) {
  if (!p.tables.data) return {0, j};
  return {p.tables.at(b, j / p.block_size), j % p.block_size};
}
TC_HOST_DEVICE int64_t offset(const KeyStrides& s, const KeyPlace& place) {
  return place.block * s.block + place.row * s.row;
}
TC_HOST_DEVICE int64_t offset(const QueryStrides& s, int64_t b, int64_t i) {
  return b * s.batch + i * s.row;
}

}  // namespace tensorcraft::kernel::mqa_logits

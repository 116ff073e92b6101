// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/key_range.h"
#include "tensorcraft/device/output_type.h"
#include "tensorcraft/device/tensor_map.h"
#include "tensorcraft/device/tree_mask.h"
#include "tensorcraft/device/warpgroup.h"

namespace tensorcraft::kernel::attention_tiles {

inline constexpr int kMaxHeadDim = 512;

// Elements between neighbours; the innermost dimension has stride 1.
struct Strides {
  int64_t batch, head, row;
};

// A bool for each score, which keys are seen, or a number that is added to it.
enum class MaskType : int32_t { none, bools, float32s, of_q };  // of_q: of its 16-bit dtype
struct Mask {
  const void* data;
  int64_t batch, head, row, key;  // elements between neighbours; 0: shared
  MaskType type;
};

// The number that codes of a head are multiplied by; null: 1.
struct CodeScale {
  const float* at;
  int64_t each;  // from the number of a head to that of the next; 0: one for all
};
TC_HOST_DEVICE float scale_of(const CodeScale& s, int head) {
  return s.at ? s.at[head * s.each] : 1.f;
}

// q and out are [batch, heads, seq_q, d], k and v [batch, heads / group, seq_k, d], in any order of
// the outer dimensions; v and out have v_dim in place of d. Of a ragged batch they have one batch,
// of all rows, and q_starts and k_starts say which rows are a request's.
struct Params {
  const void *q, *k, *v;
  void* out;
  float* lse;  // contiguous [batch, heads, seq_q], packed: [batch, seq_q, heads]; null: not wanted
  const void* key_lengths;          // [requests], int32 or int64; null: every key counts
  const void *q_starts, *k_starts;  // [requests + 1], likewise; null: not ragged. Of a ragged batch
                                    // without k_starts each request's keys begin at row 0
  const uint8_t* causal_each;       // [requests], bool; null: `window` is that of all
  const float* sinks;               // [heads]; null: none
  float* parts;                     // in the workspace: the memory of key_parts()
  unsigned char* v_tiles;           // float8 on wgmma, in the workspace: see value_tiles.cuh
  Mask mask;
  CodeScale q_scale, k_scale, v_scale;  // of codes, those of k and v a head of k
  Strides q_strides, k_strides, v_strides, out_strides;
  int32_t batch, heads, group, seq_q, seq_k, head_dim, v_dim;
  int32_t requests;                                    // of a ragged batch, else batch
  int32_t wide_lengths, wide_q_starts, wide_k_starts;  // they are int64
  int32_t num_parts;                                   // of the keys of a request, if written
  Window window;                                       // of requests that are not causal
  float scale, softcap;                                // softcap 0: none
  int32_t part_run;                                    // KeyParts::run
};

// A Config looks at these: kRanges: windows, sinks, ragged batches and causal of each request;
// kSoftcap: softcap too; kMasks: a mask too.
inline constexpr int kRanges = 1, kSoftcap = 2, kMasks = 3;

struct Config {
  int head_dim = 0;  // naive: at most
  int block_m = 0;   // queries of a block
  int block_n = 0;   // keys of a tile
  int threads = 128;
  int options = 0;    // what of Params it looks at besides causal and key_lengths; naive: at all
  int value_dim = 0;  // split_kv: values of a block; rungs on tiles: head_dim of v, 0: that of q
  int stages = 0;     // tiles of keys, and of values, in shared memory
  // From wgmma on:
  int consumers = 0;    // warpgroups of 64 queries each
  int takes_turns = 0;  // they start their products one after another
  int out_tile = 0;     // the output leaves from memory of its own, not from that of the queries
  int out = 0;          // of float8 inputs: the output's OutputType; 0: own
  int scaled = 0;       // kByHead: 16-bit keys and values are multiplied by k_scale and v_scale;
                        // kByRow: and queries of bfloat16 become rows of float16 (row_unit.cuh)
  int packed = 0;       // heads of a group whose queries are rows of a tile side by side; 0: one
  int padded = 0;       // split_kv: rows in memory are shorter than those of tiles
  int has_tree = 0;     // it looks at HopperParams::tree
  int parts = 0;        // of the keys; kWritten: works are parts, which a second step folds;
                        // kFolded: a work has all parts, which its consumers fold
};

inline constexpr int kByHead = 1, kByRow = 2;
inline constexpr int kWritten = 1, kFolded = 2;

// The element type of the output.
template <class T, Config C>
using Output = Select<C.scaled == kByRow || C.out == int(OutputType::bfloat16), bf16,
                      Select<C.out == int(OutputType::float16), f16,
                             Select<C.out == int(OutputType::float32), float, T>>>;

// Rungs from wgmma on are given more: how the copy engine finds 64 elements of a row,
// rows, head and batch.
struct HopperParams : Params {
  TensorMap q_map, k_map, v_map, out_map;
  // persistent: works that blocks have taken after their first; 0 before and after.
  uint32_t* taken;
  int32_t section;  // heads, or packed ones, whose works follow each other by their queries
  TreeMask tree;    // of queries over pages; of a ragged batch its rows are tokens
};

// Bytes of dynamic shared memory that a ring takes.
TC_HOST_DEVICE constexpr int dim_of_values(const Config& c) {
  return c.value_dim ? c.value_dim : c.head_dim;
}
// Values so long that two consumers divide their columns are the first elements of keys: a tile of
// the ring is both. A consumer in front of the two makes the weights (column_consumer.cuh).
inline constexpr int kMostValues = 256;
TC_HOST_DEVICE constexpr bool values_are_keys(const Config& c) {
  return dim_of_values(c) > kMostValues;
}
TC_HOST_DEVICE constexpr int values_of_consumer(const Config& c) {
  return values_are_keys(c) ? dim_of_values(c) / 2 : dim_of_values(c);
}
// Rows of whole boxes of 128 bytes, and barriers. Of float8 a row of the output has two bytes an
// element, and a tile of values is value_lines() boxes of one line (value_tiles.cuh).
TC_HOST_DEVICE constexpr int element_bytes(const Config& c) {
  return c.out == int(OutputType::own) ? 2 : 1;
}
TC_HOST_DEVICE constexpr int boxed_dim(const Config& c) {
  return round_up(c.head_dim, 128 / element_bytes(c));
}
TC_HOST_DEVICE constexpr int boxed_values(const Config& c) {
  return round_up(dim_of_values(c), 64);
}
inline constexpr int kWorkBytes = 56;
// Bytes in which the consumers of a block fold parts: behind the ring, or if values are keys in
// device memory.
TC_HOST_DEVICE constexpr int folded_bytes(const Config& c) {
  return c.parts == kFolded ? c.block_m * dim_of_values(c) * 4 : 0;
}
// The keys of a part if values are keys: the more heads a tile has, the longer its fold takes.
TC_HOST_DEVICE constexpr int long_part(const Config& c) {
  return !values_are_keys(c) ? 0 : c.packed > 32 ? 2048 : 1024;
}
// If values are keys: of each row a float for each stage, four for folds and one for the result,
// and a barrier; a barrier for each stage.
TC_HOST_DEVICE constexpr int shared_row_bytes(const Config& c) {
  return values_are_keys(c) ? c.block_m * 4 * (c.stages + 5) + 8 * (c.stages + 1) : 0;
}
// Does the next work's queries' memory not wait for the output of this one?
TC_HOST_DEVICE constexpr bool frees_queries_early(const Config& c) {
  return c.out_tile || c.parts == kWritten;
}
TC_HOST_DEVICE constexpr int value_lines(int head_dim) { return head_dim < 128 ? head_dim : 128; }
TC_HOST_DEVICE constexpr int value_tile_bytes(int head_dim) { return value_lines(head_dim) * 128; }
TC_HOST_DEVICE constexpr int ring_shared_bytes(const Config& c) {
  const bool is_float8 = element_bytes(c) == 1;
  const int queries = c.block_m * boxed_dim(c) * element_bytes(c);
  const int out = is_float8 ? c.block_m * boxed_values(c) * 2 : queries;
  const int keys = c.block_n * boxed_dim(c) * element_bytes(c);
  const int values = values_are_keys(c) ? 0
                     : is_float8        ? value_tile_bytes(c.head_dim)
                                        : c.block_n * boxed_values(c) * 2;
  return round_up(queries + c.out_tile * out + c.stages * (keys + values) + (4 * c.stages + 2) * 8 +
                      kWorkBytes + shared_row_bytes(c),
                  1024);
}

// Spans of the rows of a ragged batch: span 0 is in front of request 0, span s + 1 is request s,
// and what follows the last request is one more.
TC_HOST_DEVICE int spans(const Params& p) { return p.requests + 2; }

// Works of the same queries, each of which has as many parts, if parts are written.
TC_HOST_DEVICE int runs_of_parts(const Params& p) { return div_ceil(p.num_parts, p.part_run); }

// The queries of a tile, each of which has a row for each packed head, and the tiles of heads.
TC_HOST_DEVICE constexpr int packed_heads(const Config& c) { return c.packed ? c.packed : 1; }
TC_HOST_DEVICE constexpr int queries_of(const Config& c) { return c.block_m / packed_heads(c); }

// How many tiles of `rows` queries cover a head, whatever the requests of a ragged batch are: one
// of n queries has at most n / rows + 1.
TC_HOST_DEVICE int query_tiles(const Params& p, int rows) {
  return p.q_starts ? p.seq_q / rows + spans(p) : div_ceil(p.seq_q, rows);
}

}  // namespace tensorcraft::kernel::attention_tiles

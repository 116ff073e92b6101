// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/ops/mqa_logits/params.h"

// How each rung is chosen and started; host only. Grids depend on shapes alone, so a captured graph
// serves other ranges, tables and lengths.
namespace tensorcraft::kernel::mqa_logits {

using Choice = op::Choice<Config>;
using Start = op::Start<Config>;

struct Given {
  int element_bytes;
};

inline Choice naive(const Params& p, const Given&, const op::Gpu&) {
  constexpr int kThreads = 128;
  const int64_t logits = int64_t(p.batch) * p.queries * p.keys;
  return Start{.config = {.threads = kThreads},
               .blocks = std::min(div_ceil(logits, int64_t(kThreads)), op::kMaxBlocks)};
}

inline constexpr int kMaxSpans = 8;
inline constexpr int64_t kSharedBytes = 96 << 10;  // two blocks of a multiprocessor have room
inline constexpr int kMaxRows = 8;                 // of a block

inline int spans_of(const Params& p) { return int(div_ceil(p.head_dim, 32)); }
inline int64_t bytes_of_query(const Params& p) {
  return words_of_query(p.heads, spans_of(p)) * 16 + p.heads * int64_t(sizeof(float)) +
         int64_t(sizeof(KeyRange));
}

// As many queries for a block as shared memory has room for: so often a key is used. Keys are
// divided as often as it takes for some blocks for each multiprocessor.
inline void cut(Params& p, const Given&, const op::Gpu& gpu) {
  constexpr int64_t kBlocksOfSm = 8;
  const int64_t room = kSharedBytes / bytes_of_query(p), rows = std::max(p.queries, 1);
  p.rows_of_block = int32_t(std::clamp(room, int64_t(1), std::min<int64_t>(kMaxRows, rows)));
  p.row_tiles = int32_t(div_ceil(rows, p.rows_of_block));
  const int64_t step = keys_of_warp(spans_of(p)) * Config().threads / 32,
                steps = std::max(div_ceil(int64_t(p.keys), step), int64_t(1)),
                row_tiles = std::max(int64_t(p.batch) * p.row_tiles, int64_t(1)),
                slices = div_ceil(gpu.num_sms * kBlocksOfSm, row_tiles);
  p.keys_of_block = int32_t(step * div_ceil(steps, std::clamp(slices, int64_t(1), steps)));
}

// 8 elements are one access.
inline bool is_aligned(const void* data, int64_t bytes, std::initializer_list<int64_t> strides) {
  const bool at_multiples =
      std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s % 8 == 0; });
  return reinterpret_cast<uintptr_t>(data) % uintptr_t(8 * bytes) == 0 && at_multiples;
}

inline Choice tensor_core(const Params& whole, const Given& given, const op::Gpu& gpu) {
  const QueryStrides& q = whole.q_strides;
  const KeyStrides& k = whole.k_strides;
  if (given.element_bytes > 2) return op::refuse("needs float8_e4m3fn, float16 or bfloat16");
  if (whole.heads == 0 || whole.head_dim == 0 || whole.head_dim % 8 != 0 ||
      whole.head_dim > 32 * kMaxSpans)
    return op::refuse("needs heads, and a head_dim of 8 to 256 in steps of 8");
  if (q.step != 1 || k.step != 1 ||
      !is_aligned(whole.q, given.element_bytes, {q.batch, q.row, q.head}) ||
      !is_aligned(whole.k, given.element_bytes, {k.block, k.row}))
    return op::refuse("rows of q and k must have stride 1 and begin at multiples of 8 elements");
  Params p = whole;
  cut(p, given, gpu);
  const int64_t shared_bytes = p.rows_of_block * bytes_of_query(p);
  const int64_t blocks =
      int64_t(p.batch) * p.row_tiles * div_ceil(int64_t(p.keys), int64_t(p.keys_of_block));
  return Start{.config = {.spans = spans_of(p)},
               .blocks = blocks,
               .min_blocks = shared_bytes <= kSharedBytes ? 2 : 1,
               .shared_bytes = int(shared_bytes)};
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "tensor_core",
     .file = "01_tensor_core.cuh",
     .idea =
         "heads of some queries in shared memory, keys in registers: a key is read once for all",
     .choose = tensor_core,
     .adapt = cut},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread a logit, any strides",
     .choose = naive},
};

}  // namespace tensorcraft::kernel::mqa_logits

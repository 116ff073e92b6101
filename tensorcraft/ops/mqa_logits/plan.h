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
inline constexpr int kMaxColumns = 128;            // wgmma: columns of a product

inline int spans_of(const Params& p) { return int(div_ceil(p.head_dim, 32)); }
inline int64_t bytes_of_query(const Params& p) {
  return words_of_query(p.heads, spans_of(p)) * 16 + p.heads * int64_t(sizeof(float)) +
         int64_t(sizeof(KeyRange));
}

// A block has `rows` queries. Keys are divided, at multiples of `step`, as often as it takes for
// some blocks for each multiprocessor.
inline void cut_to(Params& p, int64_t rows, int64_t step, const op::Gpu& gpu) {
  constexpr int64_t kBlocksOfSm = 8;
  p.rows_of_block = int32_t(rows);
  p.row_tiles = int32_t(div_ceil(std::max<int64_t>(p.queries, 1), rows));
  const int64_t steps = std::max(div_ceil(int64_t(p.keys), step), int64_t(1)),
                row_tiles = std::max(int64_t(p.batch) * p.row_tiles, int64_t(1)),
                slices = div_ceil(gpu.num_sms * kBlocksOfSm, row_tiles);
  p.keys_of_block = int32_t(step * div_ceil(steps, std::clamp(slices, int64_t(1), steps)));
}
inline int64_t num_blocks(const Params& p) {
  if (p.queries == 0) return 0;
  return int64_t(p.batch) * p.row_tiles * div_ceil(int64_t(p.keys), int64_t(p.keys_of_block));
}

// As many queries for a block as shared memory has room for: so often a key is used.
inline void cut(Params& p, const Given&, const op::Gpu& gpu) {
  const int64_t room = kSharedBytes / bytes_of_query(p), rows = std::max(p.queries, 1);
  cut_to(p, std::clamp(room, int64_t(1), std::min<int64_t>(kMaxRows, rows)),
         keys_of_warp(spans_of(p)) * Config().threads / 32, gpu);
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
  return Start{.config = {.spans = spans_of(p)},
               .blocks = num_blocks(p),
               .min_blocks = shared_bytes <= kSharedBytes ? 2 : 1,
               .shared_bytes = int(shared_bytes)};
}

// Heads of a query with those that fill it up, as wgmma has widths, and queries of a product: a
// power of two, up to which it has at most kMaxColumns columns. More than 4 take registers that two
// blocks of a multiprocessor do not have, and so do heads that are filled up, so that a product of
// several queries has fewer columns then.
inline int padded_heads(const Params& p) {
  return p.heads <= 8 ? 8 : int(div_ceil(p.heads, 16)) * 16;
}
inline int queries_of_product(const Params& p) {
  const int columns = p.heads == padded_heads(p) ? kMaxColumns : kMaxColumns * 3 / 4;
  int queries = 1;
  while (queries < std::min(p.queries, 4) && 2 * queries * padded_heads(p) <= columns) queries *= 2;
  return queries;
}

// Tiles of keys for which a block has room in so much memory, equally many for each consumer.
inline int stages_in(int bytes, const Config& c, int element_bytes) {
  constexpr int kMost = 8;
  const int room = bytes - ring_bytes(c, element_bytes);
  const int stages =
      std::clamp(room / (line_bytes(c.head_dim, element_bytes) * kGroupRows), 0, kMost);
  return stages / kConsumers * kConsumers;
}

// Two blocks of a multiprocessor share its memory, unless fewer than kFewStages of keys are left
// then. A tile of keys serves as many products as that leaves room for the queries of.
inline constexpr int kHalf = 110 << 10;
inline Config wgmma_config(const Params& p, const Given& given) {
  constexpr int kFewStages = 4, kAll = 224 << 10;
  const int bytes = given.element_bytes, step = 32 / bytes;
  Config c{.threads = kConsumers * kWarpgroup + 32,
           .head_dim = int(div_ceil(p.head_dim, step)) * step,
           .heads = padded_heads(p),
           .queries = queries_of_product(p),
           .products = 1,
           .filled = p.heads != padded_heads(p)};
  while (rows_of(c) < std::min(p.queries, kMaxRows)) {
    Config more = c;
    more.products *= 2;
    if (stages_in(kHalf, more, bytes) < kFewStages) break;
    c = more;
  }
  const int stages = stages_in(kHalf, c, bytes);
  c.stages = stages >= kFewStages ? stages : stages_in(kAll, c, bytes);
  return c;
}
inline void cut_columns(Params& p, const Given& given, const op::Gpu& gpu) {
  cut_to(p, rows_of(wgmma_config(p, given)), kConsumers * kGroupRows, gpu);
}

// Whether the copy engine takes a dimension of so many elements this stride; no two share memory.
inline bool is_box_stride(int64_t size, int64_t stride, int element_bytes) {
  constexpr int64_t kEnd = int64_t(1) << 40;
  return size <= 1 ||
         (stride > 0 && stride < kEnd / element_bytes && stride * element_bytes % 16 == 0);
}

inline Choice wgmma(const Params& whole, const Given& given, const op::Gpu& gpu) {
  const QueryStrides& q = whole.q_strides;
  const KeyStrides& k = whole.k_strides;
  const int bytes = given.element_bytes;
  if (gpu.architecture < 90) return op::refuse("needs sm_90");
  if (gpu.architecture > 90) return op::refuse("wgmma exists on sm_90 alone");
  if (bytes > 2) return op::refuse("needs float8_e4m3fn, float16 or bfloat16");
  if (whole.heads == 0 || whole.heads > kMaxColumns || whole.head_dim == 0 ||
      whole.head_dim > 32 * kMaxSpans)
    return op::refuse("needs 1 to 128 heads and a head_dim of 1 to 256");
  if (q.step != 1 || k.step != 1 || !op::is_vector_aligned(whole.q) ||
      !op::is_vector_aligned(whole.k) || !is_box_stride(whole.heads, q.head, bytes) ||
      !is_box_stride(whole.queries, q.row, bytes) || !is_box_stride(whole.batch, q.batch, bytes) ||
      !is_box_stride(whole.block_size, k.row, bytes) ||
      !is_box_stride(whole.blocks, k.block, bytes))
    return op::refuse(
        "rows of q and k must have stride 1 and begin at 16-byte boundaries, and share no memory");
  if (whole.tables.data && whole.block_size % 8 != 0)
    return op::refuse("block_size must be a multiple of 8");
  if (whole.tables.data && (whole.blocks == 0 || whole.blocks > op::kMaxBlocks))
    return op::refuse("needs 1 to 2^31 - 1 blocks of keys");
  Params p = whole;
  cut_columns(p, given, gpu);
  const Config config = wgmma_config(p, given);
  const int shared_bytes = ring_bytes(config, bytes);
  return Start{.config = config,
               .blocks = num_blocks(p),
               .min_blocks = shared_bytes <= kHalf ? 2 : 1,
               .shared_bytes = shared_bytes};
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "wgmma",
     .file = "02_wgmma.cuh",
     .idea = "the copy engine streams keys, 64 of them times all heads of some queries are one "
             "product of a warpgroup",
     .choose = wgmma,
     .adapt = cut_columns},
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

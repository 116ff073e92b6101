// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/rung.h"
#include "tensorcraft/ops/paged_attention/params.h"

#include <string_view>

// How each rung is chosen and started; host only. Grids depend on shapes alone, so a captured graph
// serves sequences that grow.
namespace tensorcraft::kernel::paged_attention {

using Choice = op::Choice<Config>;
using Start = op::Start<Config>;

// What the call says besides Params.
struct Given {
  int element_bytes, code_bytes;
};

inline constexpr int kThreads = 128;

inline Choice naive(const Params& p, const Given&, const op::Gpu&) {
  const int64_t blocks = div_ceil(p.tokens * p.heads, int64_t(kThreads / 32));
  if (blocks > op::kMaxBlocks) return op::refuse("queries times heads must be below 2^33");
  return Start{.config = {.threads = kThreads}, .blocks = blocks};
}

inline constexpr int kMaxSplitQueries = 16;

inline bool is_aligned(const void* data, const Strides& s, int bytes) {
  return s.step == 1 && op::is_vector_aligned(data) && s.batch * bytes % 16 == 0 &&
         s.row * bytes % 16 == 0 && s.head * bytes % 16 == 0;
}
inline bool is_aligned(const Cache& c, int bytes) {
  return c.step == 1 && op::is_vector_aligned(c.data) && c.block * bytes % 16 == 0 &&
         c.row * bytes % 16 == 0 && c.head * bytes % 16 == 0;
}

// Why the rows of a block cannot be packed, or empty.
inline std::string_view packing_refusal(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (!gpu.has_cp_async()) return "needs sm_80";
  if (given.element_bytes != 2) return "needs float16 or bfloat16 queries";
  if (p.block_size % 16 != 0) return "block_size must be a multiple of 16";
  if (p.head_dim % 32 != 0 || p.v_dim % 64 != 0)
    return "head_dim must be a multiple of 32, that of values one of 64";
  if (!is_aligned(p.q, p.q_strides, 2) || !is_aligned(p.out, p.out_strides, 2) ||
      !is_aligned(p.k, given.code_bytes) || !is_aligned(p.v, given.code_bytes))
    return "rows of q, out and caches must have stride 1 and begin at multiples of 16 bytes";
  return "";
}

inline PartShape shape_for(const Params& p, const Given& given, const op::Gpu& gpu,
                           int64_t rows_of_request) {
  return part_shape(rows_of_request, p.head_dim, p.v_dim, given.code_bytes, p.softcap > 0,
                    given.code_bytes == 1 && (p.k.has_key_scales() || p.v.has_key_scales()),
                    gpu.shared_bytes_per_block);
}
// The start of a rung whose blocks do the work of an AttentionPart each.
inline Choice start_parts(const PartShape& shape, const Given& given, int64_t blocks,
                          std::string_view too_many) {
  if (blocks > op::kMaxBlocks) return op::refuse(too_many);
  return Start{.config = {.threads = 32 * shape.warps,
                          .head_dim = shape.head_dim,
                          .value_dim = shape.value_dim,
                          .has_softcap = shape.has_softcap,
                          .stages = shape.stages,
                          .row_tiles = shape.row_tiles,
                          .has_key_scales = shape.has_key_scales},
               .blocks = blocks,
               .min_blocks = shape.blocks,
               .shared_bytes = part_shared_bytes(shape, given.code_bytes)};
}

// Requests of a ragged batch have as many tokens as they have on average, as far as shapes say.
inline Choice packed(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = packing_refusal(p, given, gpu); !why.empty()) return op::refuse(why);
  const int64_t of_request = p.batch ? div_ceil(p.tokens, int64_t(p.batch)) : 1;
  const PartShape shape = shape_for(p, given, gpu, of_request * p.group);
  const int64_t tiles = div_ceil(p.tokens * p.group, int64_t(shape.rows()));
  return start_parts(shape, given, tiles * (p.heads / p.group) * (p.v_dim / shape.value_dim),
                     "more than 2^31 - 1 blocks of 16 rows");
}

inline PartSplit split_of(const Params& p, const Given& given, const op::Gpu& gpu) {
  const int64_t rows = int64_t(p.group) * p.queries;
  return part_split(shape_for(p, given, gpu, rows), int64_t(p.batch) * (p.heads / p.group), rows,
                    int64_t(p.block_size) * p.table_size, p.v_dim, given.code_bytes, gpu.num_sms);
}
inline void set_run(Params& p, const Given& given, const op::Gpu& gpu) {
  p.part_run = split_of(p, given, gpu).run;
}
inline Choice split_kv(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = packing_refusal(p, given, gpu); !why.empty()) return op::refuse(why);
  if (p.starts || p.queries > kMaxSplitQueries)
    return op::refuse("needs a batch of requests with at most 16 queries each");
  if (p.table_size == 0) return op::refuse("tables have no block");
  const PartSplit split = split_of(p, given, gpu);
  return start_parts(split.shape, given, split.blocks, "more than 2^31 - 1 parts");
}

inline op::Start<CombineConfig> combine_start(const Params& p) {
  const KeyParts parts = key_parts(p);
  const CombineConfig config = combine_config(parts);
  return {.config = config,
          .blocks = div_ceil(parts.rows * parts.chunks(), int64_t(config.rows())),
          .min_blocks = config.blocks()};
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "split_kv",
     .file = "02_split_kv.cuh",
     .idea = "parts of the keys for as many blocks, combined in their order",
     .choose = split_kv,
     .adapt = set_run},
    {.name = "packed",
     .file = "01_packed.cuh",
     .idea = "queries of heads that share keys are rows of one mma: keys are read once for 16",
     .choose = packed},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "a warp a query of a head, online softmax through the table of pages",
     .choose = naive},
};

}  // namespace tensorcraft::kernel::paged_attention

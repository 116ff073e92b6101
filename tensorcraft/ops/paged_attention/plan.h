// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/op/choice/attention_plan.h"
#include "tensorcraft/ops/paged_attention/params.h"

#include <numeric>
#include <string_view>

// How each rung is chosen and started; host only. Grids depend on shapes alone, so a captured graph
// serves sequences that grow.
namespace tensorcraft::kernel::paged_attention {

using Choice = op::Choice<Config>;
using Start = op::Start<Config>;

// What the call says besides Params.
struct Given {
  int element_bytes, code_bytes;
  bool is_latent;  // values are the first elements of keys
};

inline constexpr int kThreads = 128;

inline Choice naive(const Params& p, const Given&, const op::Gpu&) {
  const int64_t blocks = div_ceil(p.tokens * p.heads, int64_t(kThreads / 32));
  const bool has_pe = p.q_dim < p.head_dim || p.k_dim < p.head_dim;
  return Start{.config = {.threads = kThreads, .has_pe = has_pe}, .blocks = blocks};
}

inline constexpr int kMaxSplitQueries = 16;
inline constexpr std::string_view kFewQueries =
    "needs a batch of requests with at most 16 queries each";
inline constexpr int64_t kMaxRows = int64_t(1) << 30;  // counted in 32 bits

inline bool is_aligned(const void* data, const Strides& s, int bytes) {
  return s.step == 1 && op::is_vector_aligned(data) && s.batch * bytes % 16 == 0 &&
         s.row * bytes % 16 == 0 && s.head * bytes % 16 == 0;
}
inline bool is_aligned(const Cache& c, int bytes) {
  return c.step == 1 && op::is_vector_aligned(c.data) && c.block * bytes % 16 == 0 &&
         c.row * bytes % 16 == 0 && c.head * bytes % 16 == 0;
}

// Why a call is naive's alone, or empty.
inline std::string_view parts_refusal(const Params& p) {
  if (p.has_rows) return "takes no rows of 656 bytes";
  if (p.q_dim < p.head_dim || p.k_dim < p.head_dim) return "takes no q_pe and no k_pe";
  return "";
}

// Why the rows of a block cannot be packed, or empty.
inline std::string_view packing_refusal(const Params& p, const Given& given) {
  if (const auto why = parts_refusal(p); !why.empty()) return why;
  if (given.element_bytes != 2) return "needs float16 or bfloat16 queries";
  if (p.block_size % 16 != 0) return "block_size must be a multiple of 16";
  const int step = 16 / given.code_bytes;
  if (p.head_dim % step != 0 || p.v_dim % step != 0)
    return "head_dim, also that of values, must be a multiple of 8, of 16 if caches have codes";
  if (!is_aligned(p.q, p.q_strides, 2) || !is_aligned(p.out, p.out_strides, 2) ||
      !is_aligned(p.k, given.code_bytes) || !is_aligned(p.v, given.code_bytes))
    return "rows of q, out and caches must have stride 1 and begin at multiples of 16 bytes";
  return "";
}

// Scales that do not differ by key are multiplied in once if they are of codes; 16-bit keys, which
// have some seldom, take them as those of each key.
inline bool looks_at_key_scales(const Params& p, const Given& given) {
  if (given.code_bytes == 1) return p.k.has_key_scales() || p.v.has_key_scales();
  return p.k.scale || p.v.scale;
}
inline PartShape shape_for(const Params& p, const Given& given, const op::Gpu& gpu,
                           int64_t rows_of_request) {
  return part_shape(rows_of_request, p.head_dim, p.v_dim, given.code_bytes, p.softcap > 0,
                    looks_at_key_scales(p, given), gpu.shared_bytes_per_block);
}
// The start of a rung whose blocks do the work of an AttentionPart each.
inline Choice start_parts(const Params& p, const PartShape& shape, const Given& given,
                          int64_t blocks) {
  return Start{.config = {.threads = 32 * shape.warps,
                          .head_dim = shape.head_dim,
                          .value_dim = shape.value_dim,
                          .has_softcap = shape.has_softcap,
                          .stages = shape.stages,
                          .row_tiles = shape.row_tiles,
                          .has_key_scales = shape.has_key_scales,
                          .padded = shape.is_padded,
                          .has_tree = p.tree.data != nullptr},
               .blocks = blocks,
               .min_blocks = shape.blocks,
               .shared_bytes = part_shared_bytes(shape, given.code_bytes)};
}

// Requests of a ragged batch have as many tokens as they have on average, as far as shapes say.
inline Choice packed(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = packing_refusal(p, given); !why.empty()) return op::refuse(why);
  if (p.tree.data && p.tokens * p.group > kMaxRows)
    return op::refuse("takes a mask beside at most 2^30 rows of tokens and heads");
  const int64_t of_request = p.batch ? div_ceil(p.tokens, int64_t(p.batch)) : 1;
  const PartShape shape = shape_for(p, given, gpu, of_request * p.group);
  const int64_t tiles = div_ceil(p.tokens * p.group, int64_t(shape.rows()));
  return start_parts(p, shape, given,
                     tiles * (p.heads / p.group) * div_ceil(p.v_dim, shape.value_dim));
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
  if (const auto why = packing_refusal(p, given); !why.empty()) return op::refuse(why);
  if (p.starts || p.queries > kMaxSplitQueries) return op::refuse(kFewQueries);
  if (p.table_size == 0) return op::refuse("tables have no block");
  const PartSplit split = split_of(p, given, gpu);
  return start_parts(p, split.shape, given, split.blocks);
}

// The call of persistent, as attention has it. Rows of its keys are those of a block.
inline attention_tiles::Params as_attention(const Params& p) {
  const auto strides = [](const Strides& s) {
    return attention_tiles::Strides{.batch = s.batch, .head = s.head, .row = s.row};
  };
  const auto of_cache = [](const Cache& c) {
    return attention_tiles::Strides{.batch = c.block, .head = c.head, .row = c.row};
  };
  return {.q = p.q,
          .k = p.k.data,
          .v = p.v.data,
          .out = p.out,
          .lse = p.lse,
          .key_lengths = p.lengths,
          .q_starts = p.starts,
          .causal_each = p.causal_each,
          .sinks = p.sinks,
          .k_scale = {p.k.scale, p.k.scale_head},
          .v_scale = {p.v.scale, p.v.scale_head},
          .q_strides = strides(p.q_strides),
          .k_strides = of_cache(p.k),
          .v_strides = of_cache(p.v),
          .out_strides = strides(p.out_strides),
          .batch = p.starts ? 1 : p.batch,
          .heads = p.heads,
          .group = p.group,
          .seq_q = p.starts ? int32_t(p.tokens) : p.queries,
          .seq_k = p.block_size * p.table_size,
          .head_dim = p.head_dim,
          .v_dim = p.v_dim,
          .requests = p.batch,
          .wide_lengths = p.wide_lengths,
          .wide_q_starts = p.wide_starts,
          .window = p.window,
          .scale = p.scale,
          .softcap = p.softcap,
          .part_run = p.part_run};
}

// Heads that share keys whose queries are rows of one tile.
inline int packed_heads(const Params& p) { return std::gcd(p.group, kGroupRows); }

// Why the copy engine cannot bring the tiles of a call, or empty.
inline std::string_view box_refusal(const Params& p, const attention_tiles::Params& a,
                                    const Given& given, const op::Gpu& gpu) {
  if (const auto why = parts_refusal(p); !why.empty()) return why;
  if (given.element_bytes != 2) return "needs float16 or bfloat16 queries";
  if (const auto why = attention_tiles::hopper_refusal(a, 2, given.code_bytes, gpu); !why.empty())
    return why;
  if (p.k.has_key_scales() || p.v.has_key_scales()) return "takes no scale of each key";
  if ((p.k.scale || p.v.scale) && p.softcap > 0) return "takes no softcap beside scales";
  if (p.q_strides.step != 1 || p.k.step != 1 || p.v.step != 1 || p.out_strides.step != 1)
    return "elements of a row must be neighbours";
  if (p.block_size % 16 != 0) return "block_size must be a multiple of 16";
  const auto is_shared = [&](const Cache& c) {
    return (p.blocks > 1 && c.block == 0) || (p.heads > p.group && c.head == 0) || c.row == 0;
  };
  if (is_shared(p.k) || is_shared(p.v)) return "blocks, rows and heads of caches share no memory";
  if (p.blocks == 0 || p.table_size == 0) return "no request has a block";
  if (p.blocks > op::kMaxBlocks || p.tokens * packed_heads(p) > kMaxRows)
    return "needs at most 2^30 rows of tokens and heads, and 2^31 - 1 blocks";
  if ((p.lengths_step != 1 && p.batch > 1) || (p.starts && p.starts_step != 1))
    return "lengths and cu_seqlens_q must be contiguous";
  return "";
}

// Tiles of the rungs that fold parts: rows of `packed` heads, the elements of their values, and
// what folded_part_keys() takes.
struct FoldedTile {
  int rows, packed, values, long_part;
};
inline FoldedTile split_wgmma_tile(const Params& p) {
  return {p.group * p.queries > kGroupRows ? 2 * kGroupRows : kGroupRows, p.group,
          p.head_dim > 64 || p.v_dim > 64 ? 128 : 64, 0};
}
inline FoldedTile latent_tile(const Params& p) {
  const int packed = packed_heads(p);
  return {kGroupRows, packed, kMaxValueDim,
          attention_tiles::long_part({.value_dim = kMaxValueDim, .packed = packed})};
}

// How such a rung is divided into works.
struct WgmmaSplit {
  bool is_whole;   // a work has all parts of its keys: few multiprocessors are idle then
  int run;         // KeyParts::run
  int64_t blocks;  // works
};
// A block takes a fourth of the time of a part for all that it does once.
inline WgmmaSplit wgmma_split(const Params& p, const FoldedTile& tile, const op::Gpu& gpu) {
  const int64_t tiles =
      int64_t(p.batch) * (p.heads / tile.packed) * div_ceil(p.queries, tile.rows / tile.packed);
  const int parts = folded_parts(p, tile.values, tile.long_part).parts;
  const int64_t slots = std::max(gpu.num_sms, 1);
  if (parts == 1 || 4 * tiles >= 3 * round_up(tiles, slots)) return {true, 1, tiles};
  const auto works = [&](int run) { return tiles * div_ceil(parts, run); };
  const auto time = [&](int run) { return div_ceil(works(run), slots) * (4 * run + 1); };
  int best = 1;
  for (int run = 2; run <= parts; ++run)
    if (time(run) < time(best)) best = run;
  return {false, best, works(best)};
}
template <FoldedTile tile_of(const Params&)>
void set_wgmma_run(Params& p, const Given&, const op::Gpu& gpu) {
  p.part_run = wgmma_split(p, tile_of(p), gpu).run;
}
// Tiles of queries, all keys of each.
inline int64_t works_of(const Params& p, const attention_tiles::Params& a, const Config& config) {
  const int queries = attention_tiles::queries_of(tile_config(config));
  return int64_t(a.batch) * (p.heads / config.packed) * attention_tiles::query_tiles(a, queries);
}
inline Choice start_works(const Config& config, int code_bytes, int64_t works, const op::Gpu& gpu) {
  if (works > op::kMaxBlocks)
    return op::refuse("more than 2^31 - 1 tiles of queries or runs of parts");
  return Start{.config = config,
               .blocks = gpu.num_sms > 0 ? std::min<int64_t>(works, gpu.num_sms) : works,
               .shared_bytes = persistent_shared_bytes(config, code_bytes)};
}

inline Choice split_wgmma(const Params& p, const Given& given, const op::Gpu& gpu) {
  const attention_tiles::Params a = as_attention(p);
  if (const auto why = box_refusal(p, a, given, gpu); !why.empty()) return op::refuse(why);
  if (given.code_bytes == 1 || p.k.scale || p.v.scale)
    return op::refuse("takes caches of 16 bits without scales");
  if (p.starts || p.queries > kMaxSplitQueries) return op::refuse(kFewQueries);
  if (packed_heads(p) < p.group)
    return op::refuse("64 rows must be a multiple of the heads that share keys");
  if (p.head_dim > 128 || p.v_dim > 128)
    return op::refuse("head_dim, also that of values, must be at most 128");
  const FoldedTile tile = split_wgmma_tile(p);
  const WgmmaSplit split = wgmma_split(p, tile, gpu);
  const int m = tile.rows, dim = tile.values;
  const bool is_large = m * dim > 64 * 128;  // folded parts have the memory of the output
  const Config config{
      .threads = m * 2 + kWarpgroup,
      .head_dim = dim,
      .has_softcap = p.softcap > 0,
      .stages = dim == 64 ? 4 : 2,
      .has_tree = p.tree.data != nullptr,
      .block_m = m,
      .block_n = 128,
      .takes_turns = m > kGroupRows,
      .out_tile = !split.is_whole || !is_large,
      .packed = p.group,
      .box_rows = std::gcd(p.block_size, 128),
      .parts = split.is_whole ? attention_tiles::kFolded : attention_tiles::kWritten};
  Choice choice = start_works(config, 2, split.blocks, gpu);
  if (p.group * p.queries <= kTileRows)
    choice.preference = "16 rows or fewer of a head of keys cost split_kv no more than their bytes";
  return choice;
}

inline Choice latent_wgmma(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (!given.is_latent || !are_long(p.v_dim))
    return op::refuse("is for latent attention, values of more than 256 elements");
  const attention_tiles::Params a = as_attention(p);
  if (const auto why = box_refusal(p, a, given, gpu); !why.empty()) return op::refuse(why);
  if (given.code_bytes == 1 || p.k.scale)
    return op::refuse("takes caches of 16 bits without scales");
  const FoldedTile tile = latent_tile(p);
  Config config{.threads = 4 * kWarpgroup,
                .head_dim = kMaxHeadDim,
                .value_dim = tile.values,
                .has_softcap = p.softcap > 0,
                .stages = 2,
                .has_tree = p.tree.data != nullptr,
                .block_m = tile.rows,
                .block_n = 64,
                .packed = tile.packed,
                .box_rows = std::gcd(p.block_size, 64)};
  if (p.starts || p.queries > kMaxSplitQueries)
    return start_works(config, 2, works_of(p, a, config), gpu);
  const WgmmaSplit split = wgmma_split(p, tile, gpu);
  config.parts = split.is_whole ? attention_tiles::kFolded : attention_tiles::kWritten;
  return start_works(config, 2, split.blocks, gpu);
}

inline Choice persistent(const Params& p, const Given& given, const op::Gpu& gpu) {
  const attention_tiles::Params a = as_attention(p);
  if (const auto why = box_refusal(p, a, given, gpu); !why.empty()) return op::refuse(why);
  const int packed = packed_heads(p);
  attention_tiles::Params of_rows = a;
  of_rows.seq_q *= packed;
  const bool has_codes = given.code_bytes == 1;
  const attention_tiles::HopperTile* tile =
      attention_tiles::best_tile(of_rows, attention_tiles::kHopperTiles, true, has_codes ? 2 : 3);
  if (!tile) return op::refuse("head_dim, also that of values, must be at most 256");
  // Keys and values of codes have a warpgroup each, if registers reach for both, and their tiles
  // the memory of the output.
  const bool has_two = has_codes && tile->head_dim <= 128 && p.softcap == 0;
  const Config config{.threads = tile->m * 2 + kWarpgroup * (has_two ? 2 : 1),
                      .head_dim = tile->head_dim,
                      .value_dim = attention_tiles::values_of(*tile),
                      .has_softcap = p.softcap > 0,
                      .stages = tile->stages,
                      .has_tree = p.tree.data != nullptr,
                      .block_m = tile->m,
                      .block_n = tile->n,
                      .takes_turns = tile->takes_turns,
                      .out_tile = has_two ? 0 : tile->out_tile,
                      .scaled = p.k.scale || p.v.scale,
                      .packed = packed,
                      .box_rows = std::gcd(p.block_size, tile->n)};
  if (given.code_bytes == 1 && tile->value_dim)
    return op::refuse("the head_dim of codes must be that of their values");
  return start_works(config, given.code_bytes, works_of(p, a, config), gpu);
}

inline op::Start<CombineConfig> combine_start(const Params& p) {
  const KeyParts parts = key_parts(p);
  const CombineConfig config = combine_config(parts);
  return {.config = config,
          .blocks = div_ceil(parts.rows * parts.chunks(), int64_t(config.rows())),
          .min_blocks = config.blocks()};
}

inline KeyParts parts_of_fold(const Params& p, const Config& of_parts) {
  const attention_tiles::Config tiles = tile_config(of_parts);
  return folded_parts(p, dim_of_values(tiles), long_part(tiles));
}
inline op::Start<FoldConfig> fold_start(const Params& p, const Config& of_parts) {
  const KeyParts parts = parts_of_fold(p, of_parts);
  const FoldConfig config{.queries = of_parts.block_m / of_parts.packed,
                          .values = parts.values,
                          .long_part = long_part(tile_config(of_parts))};
  return {.config = config,
          .blocks = div_ceil(parts.rows * parts.chunks(), int64_t(config.threads / 32)),
          .min_blocks = 4};
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "latent_wgmma",
     .file = "05_latent_wgmma.cuh",
     .idea =
         "values are the first elements of keys: one tile is both, two consumers divide columns",
     .choose = latent_wgmma,
     .spills = "128 sums leave a thread few registers: a few words",
     .adapt = set_wgmma_run<latent_tile>},
    {.name = "split_wgmma",
     .file = "04_split_wgmma.cuh",
     .idea = "parts of the keys on wgmma, folded beside the ring or by a second step",
     .choose = split_wgmma,
     .adapt = set_wgmma_run<split_wgmma_tile>},
    {.name = "split_kv",
     .file = "02_split_kv.cuh",
     .idea = "parts of the keys for as many blocks, combined in their order",
     .choose = split_kv,
     .adapt = set_run},
    {.name = "persistent",
     .file = "03_persistent.cuh",
     .idea = "wgmma on tiles that the copy engine brings block by block of the cache",
     .choose = persistent,
     .spills = "threads that make tiles of codes have 40 registers: a few words, once a tile"},
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

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/op/choice/attention_plan.h"
#include "tensorcraft/ops/attention/params.h"

#include <string_view>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::attention {

using Start = op::Start<Config>;
using Choice = op::Choice<Config>;

// What the call says besides Params.
struct Given {
  int element_bytes;                 // of q, k and v
  OutputType out = OutputType::own;  // of float8
};

inline constexpr int kThreads = 128;

// Row-major q [batch, heads, seq_q, head_dim], k [batch, heads_k, seq_k, head_dim], v and out the
// same with v_dim, or, if `is_ragged`, [seq, heads, head_dim] of one batch. A dimension of one
// element has stride 0.
inline Params contiguous_params(const void* q, const void* k, const void* v, void* out, int batch,
                                int heads, int heads_k, int seq_q, int seq_k, int head_dim,
                                int v_dim, bool is_ragged = false) {
  const auto strides = [&](int64_t of_heads, int64_t rows, int64_t dim) {
    if (is_ragged)
      return Strides{
          .batch = 0, .head = of_heads > 1 ? dim : 0, .row = rows > 1 ? of_heads * dim : 0};
    return Strides{.batch = batch > 1 ? of_heads * rows * dim : 0,
                   .head = of_heads > 1 ? rows * dim : 0,
                   .row = rows > 1 ? dim : 0};
  };
  return {.q = q,
          .k = k,
          .v = v,
          .out = out,
          .q_strides = strides(heads, seq_q, head_dim),
          .k_strides = strides(heads_k, seq_k, head_dim),
          .v_strides = strides(heads_k, seq_k, v_dim),
          .out_strides = strides(heads, seq_q, v_dim),
          .batch = is_ragged ? 1 : batch,
          .heads = heads,
          .group = heads / heads_k,
          .seq_q = seq_q,
          .seq_k = seq_k,
          .head_dim = head_dim,
          .v_dim = v_dim,
          .requests = batch};
}

// Does every row of q, k, v and out start at a 16-byte boundary?
inline bool has_aligned_rows(const Params& p, int element_bytes) {
  const auto aligned = [&](const void* data, const Strides& s) {
    return op::is_vector_aligned(data) && s.batch * element_bytes % 16 == 0 &&
           s.head * element_bytes % 16 == 0 && s.row * element_bytes % 16 == 0;
  };
  return aligned(p.q, p.q_strides) && aligned(p.k, p.k_strides) && aligned(p.v, p.v_strides) &&
         aligned(p.out, p.out_strides);
}

// Tiles for which the accumulators fit the registers and the tiles every GPU's shared memory.
constexpr Config tiled_config(int head_dim) {
  const bool wide = head_dim > 128;
  return {.head_dim = head_dim,
          .block_m = head_dim > 256 ? 16
                     : wide         ? 32
                                    : 64,
          .block_n = wide ? 16 : 32,
          .threads = kThreads};
}

constexpr Config tensor_core_config(int head_dim, int seq_q) {
  // 32 rows a warp halve the reads of K and V from shared memory; they need long sequences to keep
  // every multiprocessor busy.
  const bool tall = head_dim == 64 && seq_q >= 512;
  return {.head_dim = head_dim,
          .block_m = tall ? 128 : 64,
          .block_n = head_dim > 128 ? 32 : 64,
          .threads = kThreads};
}

inline int64_t query_blocks(const Params& p, int block_m) {
  return int64_t(p.batch) * p.heads * query_tiles(p, block_m);
}

// The start of a rung whose blocks have config.block_m queries.
inline Start start(const Params& p, const Config& config, int shared_bytes) {
  return {
      .config = config, .blocks = query_blocks(p, config.block_m), .shared_bytes = shared_bytes};
}

// Few registers a lane for usual sizes, many for large ones.
constexpr Config naive_config(int head_dim, int v_dim, OutputType out = OutputType::own) {
  return {.head_dim = head_dim <= 256 && v_dim <= 256 ? 256 : kMaxHeadDim,
          .threads = kThreads,
          .out = int(out)};
}
inline Choice naive(const Params& p, const Given& given, const op::Gpu&) {
  const int64_t blocks = div_ceil(int64_t(p.batch) * p.heads * p.seq_q, int64_t(kThreads / 32));
  return Start{.config = naive_config(p.head_dim, p.v_dim, given.out), .blocks = blocks};
}

inline Choice tiled(const Params& p, const Given& given, const op::Gpu&) {
  if (given.element_bytes == 1) return op::refuse("takes no float8");
  Config config = tiled_config(round_up(std::max(p.head_dim, p.v_dim), 32));
  config.options = options_of(p);
  return start(p, config, tiled_shared_bytes(config));
}

inline constexpr int kMostValues = 256;  // that the registers of a block of tensor_core hold

inline Choice tensor_core(const Params& p, const Given& given, const op::Gpu&) {
  if (given.element_bytes != 2) return op::refuse("needs float16 or bfloat16");
  if (p.head_dim % 8 != 0 || p.v_dim % 8 != 0) return op::refuse(kHeadDims);
  if (!has_aligned_rows(p, given.element_bytes))
    return op::refuse("rows of q, k, v and out must start at 16-byte boundaries");
  if (!(p.scale > 0)) return op::refuse("scale must be positive");
  const int head_dim = round_up(p.head_dim, 32), slices = div_ceil(p.v_dim, kMostValues);
  const int value_dim = round_up(div_ceil(p.v_dim, slices), 32);
  Config config = tensor_core_config(head_dim, rows_of_request(p, p.seq_q));
  if (value_dim != head_dim) {
    config.value_dim = value_dim;
    config.block_m = 64;
    if (value_dim > 128) config.block_n = 32;
  }
  config.options = options_of(p);
  Start all = start(p, config, tensor_core_shared_bytes(config));
  all.blocks *= slices;
  return all;
}

// The rungs on wgmma: a block for each block_m queries, or as many as there are multiprocessors.
inline Choice on_hopper(const Params& p, const Given& given, const op::Gpu& gpu, int producers,
                        bool persists) {
  if (const auto why = hopper_refusal(p, given.element_bytes, given.element_bytes, gpu);
      !why.empty())
    return op::refuse(why);
  const bool is_float8 = given.element_bytes == 1;
  if (const auto why = is_float8 ? float8_refusal(p, given.out) : ""; !why.empty())
    return op::refuse(why);
  const HopperTile* tile = hopper_tile(p, given.element_bytes);
  if (!tile) return op::refuse("head_dim, also that of v, must be at most 256");
  Config config = hopper_config(*tile, producers, persists, given.out);
  config.options = options_of(p);
  Start all = start(p, config, ring_shared_bytes(config));
  // Blocks that stay count tiles as a grid counts blocks.
  if (const auto why = op::start_refusal(all, gpu); !why.empty()) return op::refuse(why);
  if (persists && gpu.num_sms > 0) all.blocks = std::min<int64_t>(all.blocks, gpu.num_sms);
  const bool leaves_it = !is_float8 && has_few_keys(p);
  return {all, leaves_it ? "tensor_core has smaller tiles for so few keys" : ""};
}
inline Choice wgmma(const Params& p, const Given& given, const op::Gpu& gpu) {
  return on_hopper(p, given, gpu, 0, false);
}
inline Choice warp_specialized(const Params& p, const Given& given, const op::Gpu& gpu) {
  return on_hopper(p, given, gpu, 1, false);
}
inline Choice persistent(const Params& p, const Given& given, const op::Gpu& gpu) {
  return on_hopper(p, given, gpu, 1, true);
}

// A block for each tile of values of float8.
inline op::Start<TransposeConfig> transpose_start(const Params& p) {
  const HopperTile* tile = hopper_tile(p, 1);
  const TransposeConfig config{.head_dim = tile->head_dim, .block_n = tile->n};
  return {.config = config,
          .blocks = int64_t(p.batch) * (p.heads / p.group) * div_ceil(p.seq_k, config.block_n)};
}

inline constexpr int kMaxSplitQueries = 16;

inline PartSplit split_of(const Params& p, const Given& given, const op::Gpu& gpu) {
  const int64_t rows = int64_t(p.group) * p.seq_q;
  const PartShape shape = part_shape(rows, p.head_dim, p.v_dim, given.element_bytes, p.softcap > 0,
                                     false, gpu.shared_bytes_per_block);
  return part_split(shape, int64_t(p.batch) * (p.heads / p.group), rows, p.seq_k, p.v_dim,
                    given.element_bytes, gpu.num_sms);
}
inline void divide_keys(Params& p, const Given& given, const op::Gpu& gpu) {
  p.num_parts = most_parts(p.seq_k);
  p.part_run = split_of(p, given, gpu).run;
}
inline Choice split_kv(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (given.element_bytes != 2) return op::refuse("needs float16 or bfloat16");
  if (p.q_starts || p.seq_q > kMaxSplitQueries)
    return op::refuse("needs a batch of requests with at most 16 queries each");
  if (p.mask.type != MaskType::none) return op::refuse("takes no mask");
  if (p.head_dim % 8 != 0 || p.v_dim % 8 != 0) return op::refuse(kHeadDims);
  if (!has_aligned_rows(p, given.element_bytes))
    return op::refuse("rows of q, k, v and out must start at 16-byte boundaries");
  const PartSplit split = split_of(p, given, gpu);
  const PartShape& shape = split.shape;
  return Start{.config = {.head_dim = shape.head_dim,
                          .block_m = shape.rows(),
                          .threads = 32 * shape.warps,
                          .options = shape.has_softcap ? kSoftcap : 0,
                          .value_dim = shape.value_dim,
                          .stages = shape.stages,
                          .padded = shape.is_padded},
               .blocks = split.blocks,
               .min_blocks = shape.blocks,
               .shared_bytes = part_shared_bytes(shape, given.element_bytes)};
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
     .file = "06_split_kv.cuh",
     .idea = "few queries: parts of the keys for as many blocks, combined in their order",
     .choose = split_kv,
     .adapt = divide_keys},
    {.name = "persistent",
     .file = "05_persistent.cuh",
     .idea = "blocks that stay, long works first; outputs leave while the next are computed",
     .choose = persistent},
    {.name = "warp_specialized",
     .file = "04_warp_specialized.cuh",
     .idea = "a warpgroup copies, others multiply in turns: products hide the softmax",
     .choose = warp_specialized},
    {.name = "wgmma",
     .file = "03_wgmma.cuh",
     .idea = "wgmma on tiles that the copy engine brings, weights in registers",
     .choose = wgmma},
    {.name = "tensor_core",
     .file = "02_tensor_core.cuh",
     .idea = "mma.sync on 16-bit tiles, scores and weights in registers, cp.async",
     .choose = tensor_core},
    {.name = "tiled",
     .file = "01_tiled.cuh",
     .idea = "float32 tiles of keys and values in shared memory serve a block of queries",
     .choose = tiled},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "a warp a query row, online softmax",
     .choose = naive},
};

}  // namespace tensorcraft::kernel::attention

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
// 8 elements are one access.
inline bool is_aligned(const Cache& c, int bytes) {
  return c.step == 1 && reinterpret_cast<uintptr_t>(c.data) % uintptr_t(8 * bytes) == 0 &&
         c.block % 8 == 0 && c.row % 8 == 0 && c.head % 8 == 0;
}

// The blocks of the first step: one for each tile of rows, part and slice of the values.
inline int64_t split_blocks(const Params& p, int value_dim) {
  const int64_t tiles = div_ceil(int64_t(p.group) * p.queries, int64_t(16));
  return int64_t(p.batch) * (p.heads / p.group) * tiles * parts_of(p) * (p.v_dim / value_dim);
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
    return "rows of q, out and caches must have stride 1 and begin at multiples of 8 elements";
  return "";
}

inline Config packed_config(const Params& p) {
  return {.threads = kThreads,
          .head_dim = p.head_dim,
          .value_dim = p.v_dim % 256 == 0   ? 256
                       : p.v_dim % 128 == 0 ? 128
                                            : 64,
          .has_softcap = p.softcap > 0};
}

inline Choice packed(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = packing_refusal(p, given, gpu); !why.empty()) return op::refuse(why);
  const Config config = packed_config(p);
  const int64_t blocks = div_ceil(p.tokens * p.group, int64_t(16)) * (p.heads / p.group) *
                         (p.v_dim / config.value_dim);
  if (blocks > op::kMaxBlocks) return op::refuse("more than 2^31 - 1 blocks of 16 rows");
  return Start{.config = config, .blocks = blocks};
}

inline Choice split_kv(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = packing_refusal(p, given, gpu); !why.empty()) return op::refuse(why);
  if (p.starts || p.queries > kMaxSplitQueries)
    return op::refuse("needs a batch of requests with at most 16 queries each");
  const Config config = packed_config(p);
  const int64_t blocks = split_blocks(p, config.value_dim);
  if (blocks == 0) return op::refuse("tables have no block");
  if (blocks > op::kMaxBlocks) return op::refuse("more than 2^31 - 1 parts");
  return Start{.config = config, .blocks = blocks};
}

inline op::Start<CombineConfig> combine_start(const Params& p) {
  const CombineConfig config;
  return {.config = config, .blocks = div_ceil(p.tokens * p.heads, int64_t(config.threads / 32))};
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "split_kv",
     .file = "02_split_kv.cuh",
     .idea = "parts of the keys for as many blocks, combined in their order",
     .choose = split_kv},
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

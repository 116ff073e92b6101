// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/row_plan.h"
#include "tensorcraft/ops/rope/params.h"

#include <cmath>
#include <string_view>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::rope {

using Choice = op::Choice<Config>;
using CallParams = Nested<Params>;

// Facts of a call that Params do not hold.
struct Given {
  int element_bytes, cache_bytes;
  Style style;
};

inline constexpr int kThreads = 256;

// The frequency of pair i + 1 over that of pair i, as a power of two.
inline double log2_step(double base, int64_t dim) { return -2 * std::log2(base) / double(dim); }

// `heads` heads of `dim` elements, one after another; in may be null.
inline Heads contiguous_heads(const void* in, void* out, int64_t heads, int64_t dim) {
  if (!in) return {};
  return {.in = in,
          .out = out,
          .heads = heads,
          .in_head = dim,
          .out_head = dim,
          .in_step = 1,
          .out_step = 1};
}

// By the length of a sequence; one that 31 bits do not count is not divided by.
inline Divider divider_of(int64_t seq) {
  return Divider::of(seq > 0 && seq <= op::kMaxBlocks ? seq : 1);
}

// The tensors of a call as raw pointers, null if one is not given; a position for each token.
struct Tensors {
  const void *x, *k = nullptr;
  void *out, *k_out = nullptr;
  const void *cos = nullptr, *sin = nullptr;
  const int64_t* positions = nullptr;
};
struct Sizes {
  int64_t tokens, seq, heads, heads_k, dim, max_seq;
};

// Every tensor without gaps.
inline CallParams contiguous_params(const Tensors& t, const Sizes& s, int64_t start_pos,
                                    double base) {
  const RowMap x = op::contiguous_rows(s.tokens, s.heads * s.dim);
  const RowMap k = t.k ? op::contiguous_rows(s.tokens, s.heads_k * s.dim) : RowMap{};
  const double log2 = log2_step(base, s.dim);
  return with_maps(Params{.cos_step = t.cos ? 1 : 0,
                          .sin_step = t.cos ? 1 : 0,
                          .log2_step = log2,
                          .ratio = std::exp2(log2),
                          .x = contiguous_heads(t.x, t.out, s.heads, s.dim),
                          .k = contiguous_heads(t.k, t.k_out, s.heads_k, s.dim),
                          .positions = t.positions,
                          .cos = t.cos,
                          .sin = t.sin,
                          .cos_row = t.cos ? s.dim / 2 : 0,
                          .sin_row = t.cos ? s.dim / 2 : 0,
                          .tokens = s.tokens,
                          .seq = s.seq,
                          .max_seq = t.cos ? s.max_seq : 0,
                          .start_pos = start_pos,
                          .by_seq = divider_of(s.seq),
                          .half = int32_t(s.dim / 2),
                          .wide_positions = t.positions != nullptr},
                   x, x, k, k, t.positions ? op::contiguous_rows(s.tokens, 1) : RowMap{});
}

// The rung asks Params about caches and strides, so one kernel of a style serves all.
inline Choice naive(const CallParams& p, const Given& given, const op::Gpu&) {
  return op::Start<Config>{
      {.style = given.style, .threads = kThreads, .nested = p.is_nested()},
      div_ceil(p.tokens * (p.x.heads + p.k.heads) * p.half, int64_t(kThreads))};
}

// 1024 threads on a multiprocessor; fewer if caches are wider than x, tokens have maps or angles
// are computed: each takes registers.
constexpr int vectorized_min_blocks(const Config& c, const Given& given) {
  if (!c.has_cache) return (given.element_bytes == 4 && !c.nested ? 1024 : 768) / c.threads;
  return (given.cache_bytes > given.element_bytes || c.nested ? 512 : 1024) / c.threads;
}

// A thread gets about 4 heads, `unroll` of them in flight at once; fewer if that would leave
// multiprocessors without a block.
inline op::Start<Config> vectorized_start(const CallParams& p, const Given& given, int num_sms) {
  constexpr int kWarp = 32, kHeadsOfThread = 4, kManyShares = 16;
  // Caches have no address yet in a call that is only asked about.
  Config c{.style = given.style, .threads = kThreads, .has_cache = p.cos || p.max_seq > 0};
  const auto units = uint64_t(p.half) * uint64_t(given.element_bytes) / 16;
  c.lanes = int(std::min<uint64_t>(std::bit_ceil(units), kWarp));
  const int64_t heads = p.x.heads + p.k.heads;
  auto shares = std::bit_ceil(uint64_t(div_ceil(heads, kHeadsOfThread)));
  while (shares < kManyShares && int64_t(shares) < heads &&
         p.tokens * int64_t(shares) * c.lanes < int64_t(kThreads) * num_sms)
    shares *= 2;
  c.heads = int(std::min<uint64_t>(shares, uint64_t(c.threads / c.lanes)));
  c.nested = p.is_nested();
  return {c, div_ceil(p.tokens, int64_t(c.threads / (c.lanes * c.heads))),
          vectorized_min_blocks(c, given)};
}

inline bool is_aligned(const Heads& t, const RowMap& in, const RowMap& out, int element_bytes) {
  return op::rows_vector_aligned(t.in, in, element_bytes) &&
         op::rows_vector_aligned(t.out, out, element_bytes) &&
         (t.heads == 1 ||
          (t.in_head * element_bytes % 16 == 0 && t.out_head * element_bytes % 16 == 0));
}

// Why 16-byte accesses cannot move the heads, or empty.
inline std::string_view access_refusal(const CallParams& p, const Given& given) {
  const int bytes = given.element_bytes;
  const auto has_unit_steps = [](const Heads& t) {
    return t.heads == 0 || (t.in_step == 1 && t.out_step == 1);
  };
  if (!has_unit_steps(p.x) || !has_unit_steps(p.k)) return "the last axis must have stride 1";
  if (p.half * bytes % 16) return "half a head must be a multiple of 16 bytes";
  if (!is_aligned(p.x, p.maps[Params::kX], p.maps[Params::kXOut], bytes) ||
      !is_aligned(p.k, p.maps[Params::kK], p.maps[Params::kKOut], bytes))
    return "heads must begin at multiples of 16 bytes";
  if (p.cos && (p.cos_step != 1 || p.sin_step != 1 || !op::is_vector_aligned(p.cos) ||
                !op::is_vector_aligned(p.sin) || p.cos_row * given.cache_bytes % 16 ||
                p.sin_row * given.cache_bytes % 16))
    return "rows of cos and sin must be contiguous and begin at multiples of 16 bytes";
  if (p.tokens > op::kMaxBlocks || p.x.heads + p.k.heads > op::kMaxBlocks / 2)
    return "more than 2^31 - 1 tokens, or 2^30 heads of one";
  return "";
}

inline Choice vectorized(const CallParams& p, const Given& given, const op::Gpu& gpu) {
  if (p.x.heads > 0)  // else nothing is moved
    if (const auto why = access_refusal(p, given); !why.empty()) return op::refuse(why);
  return vectorized_start(p, given, gpu.num_sms);
}

inline constexpr op::Rung<CallParams, Given, Config> kRungs[] = {
    {.name = "vectorized",
     .file = "01_vectorized.cuh",
     .idea = "16-byte accesses; cos and sin once for all heads of a token",
     .choose = vectorized},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread a pair, any strides",
     .choose = naive,
     .general = op::with_nested<Config>},
};

// rope_cache.

struct CacheGiven {};  // CacheParams say everything

inline op::Choice<CacheConfig> cache(const CacheParams& p, const CacheGiven&, const op::Gpu&) {
  const CacheConfig config;
  return op::Start<CacheConfig>{config, div_ceil(p.count * p.half, int64_t(config.threads))};
}

inline constexpr op::Rung<CacheParams, CacheGiven, CacheConfig> kCacheRungs[] = {
    {.name = "naive",
     .file = "cache.cuh",
     .idea = "one thread a position and pair",
     .choose = cache,
     .kernel = "cache"},
};

}  // namespace tensorcraft::kernel::rope

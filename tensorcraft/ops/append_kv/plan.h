// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/latent_row.h"
#include "tensorcraft/op/choice/row_plan.h"
#include "tensorcraft/ops/append_kv/params.h"

#include <string_view>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::append_kv {

using Choice = op::Choice<Config>;
using Start = op::Start<Config>;
using CallParams = Nested<Params>;

// What the call says besides Params. Parameters are cos, sin and the weights.
struct Given {
  int element_bytes, code_bytes, parameter_bytes;
  bool rotates, normalizes;  // in a call that is only asked about they have no address
  bool normalizes_q;
  bool has_rows;  // of device/latent_row.h
};

inline constexpr int kThreads = 256;

inline int64_t heads_of(const Params& p) { return int64_t(p.q.count) + p.k.count + p.v.count; }

inline Choice naive(const CallParams& p, const Given&, const op::Gpu&) {
  const int64_t blocks = div_ceil(p.tokens * heads_of(p), int64_t(kThreads / 32));
  return Start{.config = {.threads = kThreads, .nested = p.is_nested()},
               .blocks = std::max<int64_t>(blocks, 1)};
}

inline bool is_aligned(const Heads& t, const RowMap& map, int bytes) {
  return t.count == 0 ||
         (op::rows_vector_aligned(t.in, map, bytes) && (t.count == 1 || t.head * bytes % 16 == 0));
}
// `unit` elements of code_bytes are one access.
inline bool is_aligned(const Cache& c, int code_bytes, int unit) {
  const auto whole = [&](int64_t stride) { return stride % unit == 0; };
  return reinterpret_cast<uintptr_t>(c.data) % uintptr_t(unit * code_bytes) == 0 &&
         whole(c.block) && whole(c.row) && whole(c.head);
}
inline bool has_aligned_parameters(const CallParams& p, int bytes) {
  const auto aligned = [&](const void* data, int64_t row, int64_t step) {
    return !data || (step == 1 && op::is_vector_aligned(data) && row * bytes % 16 == 0);
  };
  return aligned(p.cos, p.cos_row, p.cos_step) && aligned(p.sin, p.sin_row, p.sin_step) &&
         aligned(p.q_weight, 0, 1) && aligned(p.k_weight, 0, 1);
}

inline std::string_view access_refusal(const CallParams& p, const Given& given) {
  const int bytes = given.element_bytes;
  if (p.v.count == 0 || p.k_pe.count) return "takes k and v, and no k_pe";
  if (p.k.dim != p.v.dim) return "k and v must have one head_dim";
  if (given.rotates && 2 * p.half != p.k.dim) return "all of a head must rotate, or nothing";
  if ((p.q.count && (p.q.step != 1 || p.q_out_step != 1)) || p.k.step != 1 || p.v.step != 1 ||
      p.k_cache.step != 1 || p.v_cache.step != 1)
    return "the last axis must have stride 1";
  if (p.k.dim * bytes % 32) return "half a head must be a multiple of 16 bytes";
  if (p.k.dim * bytes > 2 * 32 * 16) return "half a head must have at most 512 bytes";
  const Heads q_out{p.q_out, p.q_out_head, 1, p.q.count, p.q.dim};
  if (!is_aligned(p.q, p.maps[Params::kQ], bytes) ||
      !is_aligned(q_out, p.maps[Params::kQOut], bytes) ||
      !is_aligned(p.k, p.maps[Params::kK], bytes) || !is_aligned(p.v, p.maps[Params::kV], bytes))
    return "heads must begin at multiples of 16 bytes";
  if (!is_aligned(p.k_cache, given.code_bytes, 16 / bytes) ||
      !is_aligned(p.v_cache, given.code_bytes, 16 / bytes))
    return "heads of the caches must begin at multiples of an access";
  if (!has_aligned_parameters(p, given.parameter_bytes))
    return "cos, sin and weights must be contiguous and begin at multiples of 16 bytes";
  return "";
}

// A thread gets about 4 heads; fewer if that would leave multiprocessors without a block.
inline Choice vectorized(const CallParams& p, const Given& given, const op::Gpu& gpu) {
  constexpr int kHeadsOfThread = 4, kManyShares = 16;
  if (const auto why = access_refusal(p, given); !why.empty()) return op::refuse(why);
  Config c{.threads = kThreads,
           .rotates = given.rotates,
           .normalizes = given.normalizes,
           .nested = p.is_nested()};
  c.lanes = int(std::bit_ceil(uint64_t(std::max(p.k.dim * given.element_bytes / 32, 1))));
  const int64_t heads = heads_of(p);
  auto shares = std::bit_ceil(uint64_t(std::max<int64_t>(div_ceil(heads, kHeadsOfThread), 1)));
  while (shares < kManyShares && int64_t(shares) < heads &&
         p.tokens * int64_t(shares) * c.lanes < int64_t(kThreads) * gpu.num_sms)
    shares *= 2;
  c.heads = int(std::min<uint64_t>(shares, uint64_t(c.threads / c.lanes)));
  const int64_t blocks = div_ceil(p.tokens, int64_t(c.threads / (c.lanes * c.heads)));
  return Start{.config = c, .blocks = std::max<int64_t>(blocks, 1)};
}

// Why the rows of a call are not those of `latent_warp`, or empty.
inline std::string_view latent_refusal(const CallParams& p, const Given& given) {
  const int bytes = given.element_bytes;
  if (p.v.count) return "takes latent caches alone, which have no v";
  if (row_dim(p) != LatentRow::kDim || (p.k_pe.count && p.k.dim != LatentRow::kLatent))
    return "rows must have 512 latent values and 64 behind them";
  if (given.rotates && 2 * p.half != LatentRow::kRope) return "all 64 must rotate, or nothing";
  if (given.normalizes_q || (given.normalizes && !p.k_pe.count))
    return "normalises the latent part of k alone, beside k_pe";
  if ((given.code_bytes == 1 && !given.has_rows) || p.k_cache.scale)
    return "takes no codes but those of rows of 656 bytes, and no scale";
  if ((p.q.count && (p.q.step != 1 || p.q_out_step != 1)) || p.k.step != 1 || p.k_cache.step != 1)
    return "the last axis must have stride 1";
  const Heads q_out{p.q_out, p.q_out_head, 1, p.q.count, p.q.dim};
  Cache k_cache = p.k_cache;
  if (p.k.count == 1) k_cache.head = 0;
  if (!is_aligned(p.q, p.maps[Params::kQ], bytes) ||
      !is_aligned(q_out, p.maps[Params::kQOut], bytes) ||
      !is_aligned(p.k, p.maps[Params::kK], bytes) ||
      !is_aligned(k_cache, given.code_bytes, 16 / given.code_bytes))
    return "rows must begin at multiples of 16 bytes";
  return "";
}

inline Choice latent_warp(const CallParams& p, const Given& given, const op::Gpu&) {
  if (const auto why = latent_refusal(p, given); !why.empty()) return op::refuse(why);
  const int64_t blocks = div_ceil(p.tokens * heads_of(p), int64_t(kThreads / 32));
  return Start{.config = {.threads = kThreads,
                          .rotates = given.rotates,
                          .normalizes = given.normalizes,
                          .nested = p.is_nested()},
               .blocks = std::max<int64_t>(blocks, 1)};
}

inline constexpr op::Rung<CallParams, Given, Config> kRungs[] = {
    {.name = "latent_warp",
     .file = "02_latent_warp.cuh",
     .idea = "a warp a row of 512 latent values and 64 that rotate, 16-byte accesses",
     .choose = latent_warp,
     .general = op::with_nested<Config>},
    {.name = "vectorized",
     .file = "01_vectorized.cuh",
     .idea = "16-byte accesses; slot, cos and sin once for all heads of a token",
     .choose = vectorized},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "a warp a head, any strides",
     .choose = naive,
     .general = op::with_nested<Config>},
};

}  // namespace tensorcraft::kernel::append_kv

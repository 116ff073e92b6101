// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/choice/call_plan.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

// How gemv is chosen and started; host only.
namespace tensorcraft::kernel::gemm {

// Calls that gemv and the rungs on wgmma can take go to gemv if they have fewer rows, or columns,
// than this. 0: none; kGemvTokens + 1: all. Set it when both are measured on one GPU.
inline constexpr int kFewestWgmmaRows = 5;

// A large matrix, the weights, is multiplied by few tokens: the weights are B and a token is a row
// of A, or the weights are A and a token is a column of B, which is the same of the transpose.
struct FewRows {
  bool is_transpose;
  int64_t tokens;
  Lines weights;
  bool weights_along_k() const { return (weights.layout == Layout::row_major) == is_transpose; }
};
inline FewRows few_rows(const Params& p, const Given& given) {
  if (p.m > p.n) return {true, p.n, a_lines(p, given)};
  return {false, p.m, b_lines(p, given)};
}

inline constexpr int kMaxSplit = 8;  // blocks of a cluster that every sm_90 GPU accepts

// The parts of k, up to `most`, with which a grid of `blocks` for each part ends first, of which a
// GPU holds `resident` at once. Each moves bytes at the same rate, but fewer than `enough` do not
// keep memory busy: a grid is best one full wave, or several, and not a wave and a few blocks.
// Adding up costs a little for each doubling.
inline int best_parts(int64_t blocks, int64_t resident, int64_t enough, int64_t most) {
  if (resident == 0) return 1;
  const auto time = [&](int64_t parts) {
    const int64_t rest = blocks * parts % resident;
    const int64_t moved = blocks * parts - rest + (rest ? std::max(rest, enough) : 0);
    double adding = 1;
    for (int64_t i = 1; i < parts; i *= 2) adding += 0.03;
    return double(moved) / double(parts) * adding;
  };
  int64_t best = 1;
  for (int64_t parts = 2; parts <= most; parts *= 2)
    if (time(parts) < time(best)) best = parts;
  return int(best);
}

// Blocks of kGemvWarps warps, each with kGemvLoads loads of 16 bytes a thread in flight; two blocks
// keep a multiprocessor busy.
inline constexpr int kGemvTokens = 4, kGemvWarps = 8, kGemvLoads = 8;

// The Config with its tile if k has so many parts. The lines of weights are divided among the
// warps, then k; of lines across k all warps divide k.
inline Config gemv_config(Config c, bool weights_along_k, int widest, int parts) {
  if (weights_along_k) {
    const int lines = c.block_m == 1 ? 2 : 4, warps_k = std::min(parts, kGemvWarps);
    c.stages = c.b_vector == 1 ? kGemvLoads : kGemvLoads / lines;
    c.block_n = kGemvWarps / warps_k * lines;
    c.warp_n = lines;
    c.split = parts / warps_k;
  } else {
    c.stages = kGemvLoads / widest;
    c.block_n = c.warp_n = c.b_vector == 1 ? 32 : 8 * c.b_vector;
    c.split = parts;
  }
  return c;
}

inline std::string_view gemv_refusal(const FewRows& call, const Given& given) {
  if (given.is_byte() && (given.is_integer || !call.weights_along_k()))
    return "takes 8-bit operands if they are floats and lie along k";
  if (given.gated && (call.is_transpose || !call.weights_along_k()))
    return "gates rows of a by weights that lie along k";
  if (given.batch_invariant) return kNotInvariant;
  if (call.tokens > kGemvTokens) return "takes up to 4 rows of a, or columns of b";
  if (call.weights.are_dense()) return {};
  return call.is_transpose ? "a has no axis with stride 1" : "b has no axis with stride 1";
}

inline Choice gemv(const Params& p, const Given& given, const op::Gpu& gpu) {
  const FewRows call = few_rows(p, given);
  if (const auto why = gemv_refusal(call, given); !why.empty()) return op::refuse(why);
  const int widest = 16 / given.operand_bytes;
  Config c = for_call(p, given, {.threads = 32 * kGemvWarps});
  if (!is_by_block(c.promotion)) c.promotion = Promotion::none;  // its sums are float32
  if (call.is_transpose) c = of_transpose(c);
  c.block_m = c.warp_m = call.tokens <= 2 ? std::max(int(call.tokens), 1) : kGemvTokens;
  // Accesses of 16 bytes, or single elements.
  if (c.a_vector < widest) c.a_vector = 1;
  if (c.b_vector < widest) c.b_vector = 1;
  const bool along_k = call.weights_along_k();
  const auto tiles = [&](const Config& tile) {
    return call.is_transpose ? num_tiles(p, given, tile.block_n, tile.block_m)
                             : num_tiles(p, given, tile.block_m, tile_columns(tile));
  };
  const Config whole = gemv_config(c, along_k, widest, 1);
  // Elements of k for which all warps that divide it fill their rings.
  const int step =
      along_k ? 32 * c.b_vector : kGemvWarps * 32 * c.b_vector * widest / whole.block_n;
  const int64_t most =
      std::min<int64_t>((along_k ? kGemvWarps : 1) * (gpu.has_clusters() ? kMaxSplit : 1),
                        p.k / (int64_t(step) * whole.stages));
  // A block's part of 4 sums of 4 lines, and its scales, take the registers of two.
  const bool is_large = c.block_m == kGemvTokens && is_by_block(c.promotion);
  const int per_sm = is_large ? 1 : c.block_m == 1 ? 3 : 2;
  const int64_t sms = gpu.num_sms;
  c = gemv_config(c, along_k, widest,
                  best_parts(tiles(whole), per_sm * sms, 2 * sms * 5 / 6, most));
  return choice(
      {}, {.config = c, .blocks = tiles(c) * c.split, .min_blocks = per_sm, .cluster = c.split});
}

// Why rungs that could run a call leave it to gemv; empty: it is not better, or cannot run it.
inline std::string_view gemv_preference(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (few_rows(p, given).tokens >= kFewestWgmmaRows) return {};
  const Choice c = gemv(p, given, gpu);
  const bool can_run = c.refusal.empty() && fits(c.start.config, given.config);
  return can_run ? "gemv reads the weights of so few rows sooner" : "";
}

}  // namespace tensorcraft::kernel::gemm

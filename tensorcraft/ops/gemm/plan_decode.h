// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/rung.h"
#include "tensorcraft/ops/gemm/params.h"
#include "tensorcraft/ops/gemm/plan_base.h"

#include <algorithm>
#include <string_view>
#include <utility>

// How the rungs for few rows are chosen and started; host only.
namespace tensorcraft::kernel::gemm {

// A call by the roles of its operands (params.h).
struct FewRows {
  bool exchanged;
  int64_t tokens, outputs;
  Lines weights;
  bool weights_along_k() const { return (weights.layout == Layout::row_major) == exchanged; }
};
inline FewRows few_rows(const Params& p, const Given& given) {
  if (p.m > p.n) return {true, p.n, p.m, a_lines(p, given)};
  return {false, p.m, p.n, b_lines(p, given)};
}

// A block's tile and a warp's part of it.
inline void set_tile(Config& c, bool exchanged, int tokens, int outputs, int warp_outputs) {
  c.exchanged = exchanged;
  c.block_m = c.warp_m = tokens;
  c.block_n = outputs;
  c.warp_n = warp_outputs;
  if (!exchanged) return;
  std::swap(c.block_m, c.block_n);
  std::swap(c.warp_m, c.warp_n);
}

// The smallest of these sizes, doubling, that holds `count`.
constexpr int doubled_until(int size, int64_t count) {
  while (size < count) size *= 2;
  return size;
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

// gemv: blocks of kGemvWarps warps, each with kGemvLoads loads of 16 bytes a thread in flight; two
// blocks keep a multiprocessor busy.
inline constexpr int kGemvTokens = 4, kGemvWarps = 8, kGemvLoads = 8;

// The lines of weights are divided among the warps, then k; of lines across k all warps divide k.
inline Config gemv_config(const FewRows& call, int tokens, int widest, Config c, int parts) {
  const int vector = call.exchanged ? c.a_vector : c.b_vector;
  if (call.weights_along_k()) {
    const int lines = tokens == 1 ? 2 : 4;
    c.stages = vector == 1 ? kGemvLoads : kGemvLoads / lines;
    c.warps_k = std::min(parts, kGemvWarps);
    set_tile(c, call.exchanged, tokens, kGemvWarps / c.warps_k * lines, lines);
    c.split = parts / c.warps_k;
  } else {
    const int outputs = vector == 1 ? 32 : 8 * vector;
    c.stages = kGemvLoads / widest;
    c.warps_k = kGemvWarps;
    set_tile(c, call.exchanged, tokens, outputs, outputs);
    c.split = parts;
  }
  return c;
}

inline Choice gemv(const Params& p, const Given& given, const op::Gpu& gpu) {
  const FewRows call = few_rows(p, given);
  if (call.tokens > kGemvTokens) return op::refuse("takes up to 4 rows of a, or columns of b");
  if (!call.weights.are_dense())
    return op::refuse(call.exchanged ? "a has no axis with stride 1"
                                     : "b has no axis with stride 1");
  const int widest = 16 / given.operand_bytes, tokens = doubled_until(1, call.tokens);
  Config c = for_call(p, given, {.threads = 32 * kGemvWarps});
  // Accesses of 16 bytes, or single elements.
  if (c.a_vector < widest) c.a_vector = 1;
  if (c.b_vector < widest) c.b_vector = 1;
  const Config whole = gemv_config(call, tokens, widest, c, 1);
  // Elements of k for which all warps that divide it fill their rings.
  const int vector = call.exchanged ? c.a_vector : c.b_vector;
  const int step = call.weights_along_k()
                       ? 32 * vector
                       : kGemvWarps * 32 * vector * widest / block_outputs(whole);
  const int64_t most = std::min<int64_t>(
      (call.weights_along_k() ? kGemvWarps : 1) * (gpu.has_clusters() ? kMaxSplit : 1),
      p.k / (int64_t(step) * whole.stages));
  const int per_sm = tokens == 1 ? 3 : 2;
  const int64_t tiles = num_tiles(p, given, whole.block_m, whole.block_n), sms = gpu.num_sms;
  c = gemv_config(call, tokens, widest, c, best_parts(tiles, per_sm * sms, 2 * sms * 5 / 6, most));
  return choice({}, {.config = c,
                     .blocks = num_tiles(p, given, c.block_m, c.block_n) * c.split,
                     .min_blocks = per_sm,
                     .cluster = c.split});
}

// skinny: four warps share the outputs of a block, a fifth brings them. A multiprocessor has one
// block with all of shared memory, or two if there are more blocks than multiprocessors.
inline constexpr int kSkinnyTokens = 64, kSkinnyWarps = 4, kSkinnyStep = 64, kSkinnyStages = 8;
// Below so many bytes of weights, other rungs have less to set up.
inline constexpr int64_t kSkinnyBytes = int64_t(1) << 20;

inline Choice skinny(const Params& p, const Given& given, const op::Gpu& gpu) {
  const FewRows call = few_rows(p, given);
  if (call.tokens > kSkinnyTokens) return op::refuse("takes up to 64 rows of a, or columns of b");
  if (const auto why = engine_refusal(p, given, gpu); !why.empty()) return op::refuse(why);
  Config c = for_call(p, given, {.block_k = kSkinnyStep, .threads = 32 * (kSkinnyWarps + 1)});
  c.a_vector = c.b_vector = 1;  // the copy engine takes lines of any length
  const int tokens = doubled_until(16, call.tokens);
  const auto use = [&](int outputs) {
    set_tile(c, call.exchanged, tokens, outputs, outputs / kSkinnyWarps);
  };
  const auto blocks = [&] { return num_tiles(p, given, c.block_m, c.block_n) * c.split; };
  const int64_t enough = int64_t(gpu.num_sms) * 5 / 6;
  const auto divide = [&](int outputs) {
    use(outputs);
    c.split = 1;
    c.split = best_parts(blocks(), int64_t(2) * gpu.num_sms, enough,
                         std::min<int64_t>(kMaxSplit, p.k / (2 * kSkinnyStep)));
  };
  // Larger tiles bring the tokens less often; smaller ones are more.
  divide(32 * kSkinnyWarps);
  if (blocks() < enough) divide(16 * kSkinnyWarps);
  const int per_sm = blocks() > gpu.num_sms ? 2 : 1;
  const int64_t room = gpu.shared_bytes_per_block / per_sm - 2048;
  c.stages = int(std::clamp<int64_t>(room / skinny_stage_bytes(c), 2, kSkinnyStages));
  const bool is_small = call.outputs * p.k * given.batch * 2 < kSkinnyBytes;
  return choice({},
                {.config = c,
                 .blocks = blocks(),
                 .min_blocks = per_sm,
                 .shared_bytes = skinny_shared_bytes(c),
                 .cluster = c.split},
                is_small ? "swizzled has less to set up for so few weights" : "");
}

}  // namespace tensorcraft::kernel::gemm

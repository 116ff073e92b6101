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

// gemv: blocks of kGemvWarps warps, each with kGemvLoads loads of 16 bytes a thread in flight.
// k is divided until a multiprocessor has kGemvBlocks of them.
inline constexpr int kGemvTokens = 4, kGemvWarps = 8, kGemvLoads = 8, kGemvBlocks = 3;

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
  const int vector = call.exchanged ? c.a_vector : c.b_vector;
  const bool along_k = (call.weights.layout == Layout::row_major) == call.exchanged;
  const int64_t wanted = int64_t(kGemvBlocks) * gpu.num_sms;
  const auto blocks = [&] { return num_tiles(p, given, c.block_m, c.block_n) * c.split; };
  int step;  // elements of k that all warps of a block read at once
  if (along_k) {
    const int lines = tokens == 1 ? 2 : 4;
    step = 32 * vector;
    c.stages = vector == 1 ? kGemvLoads : kGemvLoads / lines;
    const auto use = [&](int warps_k) {
      c.warps_k = warps_k;
      set_tile(c, call.exchanged, tokens, kGemvWarps / warps_k * lines, lines);
    };
    use(1);
    while (c.warps_k < kGemvWarps && blocks() < wanted &&
           p.k >= int64_t(2) * c.warps_k * step * c.stages)
      use(2 * c.warps_k);
    step *= c.warps_k;
  } else {
    const int lanes = vector == 1 ? 32 : 8;
    step = kGemvWarps * 32 / lanes * widest;
    c.stages = kGemvLoads / widest;
    c.warps_k = kGemvWarps;
    set_tile(c, call.exchanged, tokens, lanes * vector, lanes * vector);
  }
  while (gpu.has_clusters() && c.split < kMaxSplit && blocks() < wanted &&
         p.k >= int64_t(2) * c.split * step * c.stages)
    c.split *= 2;
  return choice(
      {}, {.config = c, .blocks = blocks(), .min_blocks = tokens == 1 ? 3 : 2, .cluster = c.split});
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
  const auto too_few = [&] { return blocks() * 6 < int64_t(gpu.num_sms) * 5; };
  // Larger tiles bring the tokens less often; smaller ones are more.
  const auto divide = [&](int outputs) {
    use(outputs);
    c.split = 1;
    while (c.split < kMaxSplit && too_few() && p.k >= int64_t(4) * c.split * kSkinnyStep)
      c.split *= 2;
  };
  divide(32 * kSkinnyWarps);
  if (too_few()) divide(16 * kSkinnyWarps);
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

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/choice/gemv_plan.h"
#include "tensorcraft/ops/gemm/choice/grouped_plan.h"
#include "tensorcraft/ops/gemm/choice/mma_plan.h"
#include "tensorcraft/ops/gemm/choice/hopper_plan.h"
#include "tensorcraft/ops/gemm/choice/packed_plan.h"

// The rungs of gemm, best first; host only.
namespace tensorcraft::kernel::gemm {

// A rung's choice, if that is what the caller fixed.
template <auto choose>
Choice as_wanted(const Params& p, const Given& given, const op::Gpu& gpu) {
  const Choice c = given.grouped ? grouped<choose>(p, given, gpu) : choose(p, given, gpu);
  return c.refusal.empty() && !fits(c.start.config, given.config) ? op::refuse(kNoSuchTile) : c;
}

// A rung on wgmma, which leaves few rows to gemv.
template <auto choose>
Choice unless_few_rows(const Params& p, const Given& given, const op::Gpu& gpu) {
  Choice c = choose(p, given, gpu);
  if (!c.refusal.empty()) return c;
  if (const auto why = gemv_preference(p, given, gpu); !why.empty()) c.preference = why;
  return c;
}

// Adds what a rung weighs, for the product that it is chosen for.
template <auto weigh>
void weigh_expected(op::Candidates<Config>& all, const Params& p, const Given& given,
                    const op::Gpu& gpu) {
  weigh(all, as_expected(p, given), given, gpu);
}

// naive reads no layout; what is added to a sum has a null address if it is not there, and a bias
// by column is none then too. What reads an expression reads the activation.
constexpr Config serves_all(Config c) {
  if (c.expression == Expression::compiled) return c;
  c.a_layout = c.has_groups == kGroupsOfK ? Layout::column_major : Layout::row_major;
  c.b_layout = Layout::row_major;
  c.has_scales = 1;
  c.has_c = !c.gated && !c.has_groups;
  if (!c.has_bias && !c.has_groups) c.has_bias = kByColumn;
  if (c.expression == Expression::interpreted) c.activation = Activation::none, c.c_vector = 1;
  return c;
}

// The rungs that take groups of rows.
inline constexpr std::string_view kGroupedRungs[] = {
    "persistent",    "persistent_tf32",  "swizzled", "tensor_core",
    "swizzled_tf32", "tensor_core_tf32", "async",    "naive"};

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "persistent",
     .file = "11_persistent.cuh",
     .idea = "warp_specialized, blocks and clusters that take tile after tile",
     .choose = as_wanted<unless_few_rows<persistent>>,
     .spills = "groups of float8 by squares keep a few addresses in memory while a tile is summed",
     .weigh = weigh_expected<weigh_persistent>},
    {.name = "split_k",
     .file = "12_split_k.cuh",
     .idea = "warp_specialized, the blocks of a cluster share a tile's steps along k",
     .choose = as_wanted<unless_few_rows<split_k>>,
     .weigh = weigh_split_k},
    {.name = "gemv",
     .file = "13_gemv.cuh",
     .idea = "few rows: weights stream through registers, each thread with several loads in flight",
     .choose = as_wanted<gemv>,
     .spills = "4 rows by weights across k keep a few sums in memory while they wait to be stored"},
    {.name = "persistent_tf32",
     .file = "11_persistent.cuh",
     .idea = "persistent, float32 operands rounded to tf32 by the copy engine",
     .choose = as_wanted<persistent_tf32>,
     .weigh = weigh_expected<weigh_persistent_tf32>},
    {.name = "packed",
     .file = "11_persistent.cuh",
     .idea = "persistent on aligned copies of operands that the copy engine cannot walk",
     .choose = as_wanted<packed>,
     .kernel = "persistent",
     .weigh = weigh_packed<packed>},
    {.name = "packed_tf32",
     .file = "11_persistent.cuh",
     .idea = "persistent_tf32 on copies along k of operands that are not",
     .choose = as_wanted<packed_tf32>,
     .kernel = "persistent_tf32",
     .weigh = weigh_packed<packed_tf32>},
    {.name = "persistent_3xtf32",
     .file = "11_persistent.cuh",
     .idea = "persistent on float32 in two parts of tf32, three products, the small ones first",
     .choose = as_wanted<persistent_3xtf32>,
     .weigh = weigh_packed<persistent_3xtf32>},
    {.name = "warp_specialized",
     .file = "10_warp_specialized.cuh",
     .idea = "one warpgroup copies, the others multiply, with most of the registers",
     .choose = as_wanted<warp_specialized>},
    {.name = "wgmma",
     .file = "09_wgmma.cuh",
     .idea = "wgmma reads both operands from shared memory beside the threads",
     .choose = as_wanted<wgmma>},
    {.name = "tma",
     .file = "08_tma.cuh",
     .idea = "mma.sync on tiles that the copy engine brings, A for two blocks of a cluster at once",
     .choose = as_wanted<tma>,
     .weigh = weigh_tma},
    {.name = "swizzled",
     .file = "07_swizzled.cuh",
     .idea = "mma.sync on swizzled tiles that cp.async brings through a ring of stages",
     .choose = as_wanted<swizzled>,
     .weigh = weigh_expected<weigh_swizzled<false>>},
    {.name = "tensor_core",
     .file = "06_tensor_core.cuh",
     .idea = "mma.sync on tiles that ldmatrix reads from two stages of shared memory",
     .choose = as_wanted<tensor_core>,
     .weigh = weigh_expected<weigh_tensor_core<false>>},
    {.name = "swizzled_tf32",
     .file = "07_swizzled.cuh",
     .idea = "swizzled, float32 operands rounded to tf32",
     .choose = as_wanted<swizzled_tf32>,
     .weigh = weigh_expected<weigh_swizzled<true>>},
    {.name = "tensor_core_tf32",
     .file = "06_tensor_core.cuh",
     .idea = "tensor_core, float32 operands rounded to tf32",
     .choose = as_wanted<tensor_core_tf32>,
     .weigh = weigh_expected<weigh_tensor_core<true>>},
    {.name = "async",
     .file = "05_async.cuh",
     .idea = "cp.async fills a ring of stages while threads multiply 8 x 8 tiles",
     .choose = as_wanted<async>,
     .alias = "double_buffer"},
    {.name = "vectorized",
     .file = "04_vectorized.cuh",
     .idea = "16-byte copies and shared loads around a register tile",
     .choose = as_wanted<vectorized>},
    {.name = "thread_tiled",
     .file = "03_thread_tiled.cuh",
     .idea = "each thread computes a tile of outputs from registers",
     .choose = as_wanted<thread_tiled>},
    {.name = "block_tiled",
     .file = "02_block_tiled.cuh",
     .idea = "a block shares its tiles of A and B in shared memory",
     .choose = as_wanted<block_tiled>,
     .alias = "tiled"},
    {.name = "coalesced",
     .file = "01_coalesced.cuh",
     .idea = "one thread an output, neighbours along a row of D",
     .choose = as_wanted<coalesced>},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread an output, straight from global memory",
     .choose = as_wanted<naive>,
     .general = serves_all},
};

}  // namespace tensorcraft::kernel::gemm

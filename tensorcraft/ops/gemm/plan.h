// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/plan_base.h"
#include "tensorcraft/ops/gemm/plan_decode.h"

#include <algorithm>
#include <span>
#include <string_view>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::gemm {

// A shipped tile of D and its parts, of a warp on tensor cores, else of a thread.
struct TileShape {
  struct Size {
    int m, n, k = 0;
  };
  Size block;  // k is one step along k, on tensor cores in 16-bit elements
  Size part;
  int min_blocks = 1;
  double rate = 1;  // compares tiles on a full device: larger ones use each byte more often
  int stages = 1;   // steps along k in shared memory at once
  constexpr int num_parts() const { return block.m / part.m * (block.n / part.n); }
};

inline constexpr TileShape kNaiveTile{.block = {32, 8}, .part = {1, 1}};
inline constexpr TileShape kCoalescedTile{.block = {8, 32}, .part = {1, 1}};
inline constexpr TileShape kBlockTile{.block = {32, 32, 32}, .part = {4, 1}};
// thread_tiled and vectorized.
inline constexpr TileShape kThreadTiles[] = {{.block = {128, 128, 8}, .part = {8, 8}},
                                             {.block = {64, 64, 16}, .part = {4, 4}, .rate = 0.6}};
inline constexpr TileShape kAsyncTiles[] = {
    {.block = {128, 128, 16}, .part = {8, 8}, .min_blocks = 2, .stages = 3},
    {.block = {64, 128, 16}, .part = {8, 8}, .min_blocks = 2, .rate = 0.7, .stages = 4},
    {.block = {64, 64, 16}, .part = {8, 4}, .min_blocks = 3, .rate = 0.56, .stages = 4},
    {.block = {32, 64, 16}, .part = {4, 4}, .min_blocks = 4, .rate = 0.37, .stages = 4}};
inline constexpr TileShape kTensorCoreTiles[] = {
    {.block = {128, 256, 32}, .part = {64, 64}},
    {.block = {128, 128, 32}, .part = {64, 64}, .min_blocks = 2, .rate = 0.9},
    {.block = {64, 128, 32}, .part = {32, 64}, .min_blocks = 2, .rate = 0.65},
    {.block = {64, 64, 32}, .part = {32, 32}, .min_blocks = 2, .rate = 0.5}};
inline constexpr TileShape kSwizzledTiles[] = {
    {.block = {256, 128, 64}, .part = {64, 64}, .stages = 4},
    {.block = {128, 256, 64}, .part = {64, 64}, .rate = 0.95, .stages = 4},
    {.block = {128, 128, 64}, .part = {64, 64}, .min_blocks = 2, .rate = 0.98, .stages = 3},
    {.block = {64, 256, 64}, .part = {64, 64}, .min_blocks = 2, .rate = 0.85, .stages = 2},
    {.block = {128, 64, 64}, .part = {64, 32}, .min_blocks = 2, .rate = 0.75, .stages = 4},
    {.block = {64, 128, 64}, .part = {32, 64}, .min_blocks = 2, .rate = 0.75, .stages = 4},
    {.block = {64, 64, 64}, .part = {32, 32}, .min_blocks = 3, .rate = 0.6, .stages = 4},
    {.block = {32, 128, 64}, .part = {32, 32}, .min_blocks = 3, .rate = 0.5, .stages = 4},
    {.block = {32, 64, 64}, .part = {16, 32}, .min_blocks = 4, .rate = 0.35, .stages = 4}};
// swizzled_tf32: rounding takes registers, which a warp's 64 x 64 sums leave too few of.
inline constexpr TileShape kTf32Tiles[] = {
    {.block = {128, 128, 32}, .part = {64, 32}, .stages = 5},
    {.block = {128, 64, 32}, .part = {64, 32}, .min_blocks = 2, .rate = 0.85, .stages = 5},
    {.block = {64, 128, 32}, .part = {32, 64}, .min_blocks = 2, .rate = 0.85, .stages = 5},
    {.block = {64, 64, 32}, .part = {32, 32}, .min_blocks = 2, .rate = 0.65, .stages = 5},
    {.block = {32, 128, 32}, .part = {32, 32}, .min_blocks = 2, .rate = 0.55, .stages = 5},
    {.block = {32, 64, 32}, .part = {16, 32}, .min_blocks = 3, .rate = 0.35, .stages = 5}};
// The blocks of a cluster have two such tiles side by side.
inline constexpr TileShape kTmaTiles[] = {
    {.block = {256, 128, 64}, .part = {64, 64}, .stages = 4},
    {.block = {128, 128, 64}, .part = {64, 64}, .min_blocks = 2, .rate = 0.98, .stages = 3}};

// What a tile gives of a Config; the rest is the call's.
constexpr Config element_tile(const TileShape& t) {
  return {.block_m = t.block.m,
          .block_n = t.block.n,
          .block_k = t.block.k,
          .threads = t.num_parts(),
          .stages = t.stages};
}
constexpr Config thread_tile(const TileShape& t) {
  Config c = element_tile(t);
  c.thread_m = t.part.m;
  c.thread_n = t.part.n;
  return c;
}
// A thread has its part of a warp's part.
constexpr Config async_tile(const TileShape& t) {
  Config c = thread_tile(t);
  c.warp_m = t.part.m * kAsyncLanesM;
  c.warp_n = t.part.n * kAsyncLanesN;
  return c;
}
// On tensor cores; a step along k has as many bytes for every dtype.
constexpr Config warp_tile(const TileShape& t, int operand_bytes) {
  Config c = element_tile(t);
  c.block_k = t.block.k * 2 / operand_bytes;
  c.warp_m = t.part.m;
  c.warp_n = t.part.n;
  c.threads = 32 * t.num_parts();
  return c;
}

// The busiest multiprocessor computes ceil(tiles / SMs) tiles; the tile that finishes first wins.
inline const TileShape& best_tile(const Params& p, const Given& given, const op::Gpu& gpu,
                                  std::span<const TileShape> tiles) {
  const auto time = [&](const TileShape& t) {
    const int64_t sms = std::max(gpu.num_sms, 1);
    const int64_t rounds = div_ceil(num_tiles(p, given, t.block.m, t.block.n), sms);
    return double(rounds) * t.block.m * t.block.n / t.rate;
  };
  return *std::min_element(tiles.begin(), tiles.end(),
                           [&](const auto& x, const auto& y) { return time(x) < time(y); });
}

// The rungs that take any strides read single elements, so one kernel serves every alignment.
inline Choice any_strides(const Params& p, const Given& given, const Config& tile) {
  Config c = for_call(p, given, tile);
  c.a_vector = c.b_vector = c.d_vector = 1;
  return choice({}, start(p, given, c));
}

inline Choice naive(const Params& p, const Given& given, const op::Gpu&) {
  return any_strides(p, given, element_tile(kNaiveTile));
}

inline Choice coalesced(const Params& p, const Given& given, const op::Gpu&) {
  return any_strides(p, given, element_tile(kCoalescedTile));
}

inline Choice block_tiled(const Params& p, const Given& given, const op::Gpu&) {
  return any_strides(p, given, element_tile(kBlockTile));
}

inline Choice thread_tiled(const Params& p, const Given& given, const op::Gpu& gpu) {
  return any_strides(p, given, thread_tile(best_tile(p, given, gpu, kThreadTiles)));
}

inline Choice vectorized(const Params& p, const Given& given, const op::Gpu& gpu) {
  const Config c = for_call(p, given, thread_tile(best_tile(p, given, gpu, kThreadTiles)));
  // Two blocks leave 128 registers a thread: enough for 16-byte accesses of float32, while single
  // elements need more for addresses and 16-bit elements more for conversion.
  const bool two_blocks = given.is_float32() && c.a_vector == 4 && c.b_vector == 4;
  return choice(unit_stride_refusal(p, given), start(p, given, c, two_blocks ? 2 : 1));
}

inline Choice async(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (!given.is_float32())
    return op::refuse("takes float32 operands: a copy in flight cannot convert");
  if (!gpu.has_cp_async()) return op::refuse("needs sm_80 or newer");
  const TileShape& t = best_tile(p, given, gpu, kAsyncTiles);
  Config c = for_call(p, given, async_tile(t));
  // Along k a copy is one element; elsewhere 16 bytes or one element.
  if (c.a_layout == Layout::row_major || c.a_vector < 4) c.a_vector = 1;
  if (c.b_layout == Layout::column_major || c.b_vector < 4) c.b_vector = 1;
  return choice(unit_stride_refusal(p, given),
                start(p, given, c, t.min_blocks, async_shared_bytes(c)));
}

// A choice of its own: GEMMInterface has the same tiles in another order.
inline Start tensor_core_start(const Params& p, const Given& given, const op::Gpu& gpu,
                               std::span<const TileShape> tiles = kTensorCoreTiles) {
  const TileShape& t = best_tile(p, given, gpu, tiles);
  const Config c = for_call(p, given, warp_tile(t, given.operand_bytes));
  return start(p, given, c, t.min_blocks, tensor_core_shared_bytes(c, given.operand_bytes));
}

inline Choice tensor_core(const Params& p, const Given& given, const op::Gpu& gpu) {
  return choice(tensor_operands_refusal(p, given, gpu, false), tensor_core_start(p, given, gpu));
}

inline Choice tensor_core_tf32(const Params& p, const Given& given, const op::Gpu& gpu) {
  return choice(tensor_operands_refusal(p, given, gpu, true), tensor_core_start(p, given, gpu));
}

inline Start swizzled_start(const Params& p, const Given& given, const op::Gpu& gpu) {
  const auto tiles = given.is_float32() ? std::span<const TileShape>(kTf32Tiles)
                                        : std::span<const TileShape>(kSwizzledTiles);
  const TileShape& t = best_tile(p, given, gpu, tiles);
  const int bytes = given.operand_bytes;
  Config c = for_call(p, given, warp_tile(t, bytes));
  if (c.a_vector * bytes < 16) c.a_vector = 1;  // lines end inside a chunk
  if (c.b_vector * bytes < 16) c.b_vector = 1;
  // Some architectures have less shared memory than others; two stages of any tile fit them all.
  const int stage_bytes = c.block_k * (c.block_m + c.block_n) * bytes;
  c.stages = std::clamp(int(gpu.shared_bytes_per_block) / stage_bytes, 2, t.stages);
  return start(p, given, c, t.min_blocks, swizzled_shared_bytes(c, bytes));
}

inline Choice swizzled(const Params& p, const Given& given, const op::Gpu& gpu) {
  return choice(swizzled_refusal(p, given, gpu, false), swizzled_start(p, given, gpu));
}

inline Choice swizzled_tf32(const Params& p, const Given& given, const op::Gpu& gpu) {
  return choice(swizzled_refusal(p, given, gpu, true), swizzled_start(p, given, gpu));
}

inline std::string_view tma_refusal(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (gpu.architecture >= 120) return "sm_120 copies no tile into two blocks at once";
  return engine_refusal(p, given, gpu);
}

inline Choice tma(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = tma_refusal(p, given, gpu); !why.empty()) return op::refuse(why);
  const TileShape &t = best_tile(p, given, gpu, kTmaTiles), &largest = kTmaTiles[0];
  Config c = for_call(p, given, warp_tile(t, given.operand_bytes));
  c.a_vector = c.b_vector = 1;  // the copy engine takes lines of any length
  while (c.stages > 2 && tma_shared_bytes(c, 2) > gpu.shared_bytes_per_block) --c.stages;
  const int64_t pairs = num_tiles(p, given, c.block_m, c.block_n * kTmaCluster);
  // Its tiles are large, and a pair begins and ends together: measured from 2048^3 on, where 128
  // tiles meet 132 multiprocessors, it wins.
  const int64_t tiles = num_tiles(p, given, largest.block.m, largest.block.n);
  return choice({},
                {.config = c,
                 .blocks = pairs * kTmaCluster,
                 .min_blocks = t.min_blocks,
                 .shared_bytes = tma_shared_bytes(c, 2),
                 .cluster = kTmaCluster},
                tiles * 10 < int64_t(gpu.num_sms) * 9
                    ? "swizzled has smaller tiles for so small a result"
                    : "");
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "gemv",
     .file = "13_gemv.cuh",
     .idea = "up to 4 rows of A or columns of B: weights stream into registers, no tile",
     .choose = gemv},
    {.name = "skinny",
     .file = "14_skinny.cuh",
     .idea =
         "up to 64 rows of A or columns of B: weights as the rows of mma.sync, k over a cluster",
     .choose = skinny},
    {.name = "tma",
     .file = "08_tma.cuh",
     .idea = "mma.sync on tiles that the copy engine brings, A for two blocks of a cluster at once",
     .choose = tma},
    {.name = "swizzled",
     .file = "07_swizzled.cuh",
     .idea = "mma.sync on swizzled tiles that cp.async brings through a ring of stages",
     .choose = swizzled},
    {.name = "tensor_core",
     .file = "06_tensor_core.cuh",
     .idea = "mma.sync on tiles that ldmatrix reads from two stages of shared memory",
     .choose = tensor_core},
    {.name = "swizzled_tf32",
     .file = "07_swizzled.cuh",
     .idea = "swizzled, float32 operands rounded to tf32",
     .choose = swizzled_tf32},
    {.name = "tensor_core_tf32",
     .file = "06_tensor_core.cuh",
     .idea = "tensor_core, float32 operands rounded to tf32",
     .choose = tensor_core_tf32},
    {.name = "async",
     .file = "05_async.cuh",
     .idea = "cp.async fills a ring of stages while threads multiply 8 x 8 tiles",
     .choose = async,
     .alias = "double_buffer"},
    {.name = "vectorized",
     .file = "04_vectorized.cuh",
     .idea = "16-byte copies and shared loads around a register tile",
     .choose = vectorized},
    {.name = "thread_tiled",
     .file = "03_thread_tiled.cuh",
     .idea = "each thread computes a tile of outputs from registers",
     .choose = thread_tiled},
    {.name = "block_tiled",
     .file = "02_block_tiled.cuh",
     .idea = "a block shares its tiles of A and B in shared memory",
     .choose = block_tiled,
     .alias = "tiled"},
    {.name = "coalesced",
     .file = "01_coalesced.cuh",
     .idea = "one thread an output, neighbours along a row of D",
     .choose = coalesced},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread an output, straight from global memory",
     .choose = naive},
};

}  // namespace tensorcraft::kernel::gemm

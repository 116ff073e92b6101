// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/choice/call_plan.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

// How the rungs without wgmma are chosen and started, but for gemv; host only.
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
// swizzled for 8-bit operands: promoted sums are twice as many.
inline constexpr TileShape kByteTiles[] = {
    {.block = {128, 64, 64}, .part = {32, 32}, .rate = 0.85, .stages = 4},
    {.block = {64, 64, 64}, .part = {32, 32}, .min_blocks = 2, .rate = 0.65, .stages = 4},
    {.block = {32, 64, 64}, .part = {16, 32}, .min_blocks = 3, .rate = 0.35, .stages = 4}};
// The blocks of a cluster have two such tiles side by side.
inline constexpr TileShape kTmaTiles[] = {
    {.block = {256, 128, 64}, .part = {64, 64}, .stages = 4},
    {.block = {128, 128, 64}, .part = {64, 64}, .min_blocks = 2, .rate = 0.98, .stages = 3}};

// The fields of a Config that a tile decides; the call decides the rest.
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

// How long the busiest multiprocessor computes, if blocks are spread evenly.
struct Load {
  int64_t rounds;
  double busy;  // share of that time that multiprocessors compute on average
};
inline Load load_of(int64_t blocks, const op::Gpu& gpu) {
  const int64_t sms = std::max(gpu.num_sms, 1),
                rounds = std::max<int64_t>(div_ceil(blocks, sms), 1);
  return {rounds, double(blocks) / double(rounds * sms)};
}

// When the last multiprocessor ends, in outputs of a tile with rate 1.
inline double tile_time(const Params& p, const Given& given, const op::Gpu& gpu,
                        const TileShape& t) {
  const int cols = given.gated ? t.block.n / 2 : t.block.n;
  return weighed(p, given, [&](const Params& q, const Given& g) {
    const Load load = load_of(num_tiles(q, g, t.block.m, cols), gpu);
    return double(load.rounds) * t.block.m * t.block.n / t.rate;
  });
}

// The tile that finishes first wins, among those that `config_of` makes what the caller wants; if
// there is none, any of them.
template <class ConfigOf>
const TileShape& best_tile(const Params& p, const Given& given, const op::Gpu& gpu,
                           std::span<const TileShape> tiles, const ConfigOf& config_of) {
  const bool is_free = given.config == GemmConfig{};
  const auto time = [&](const TileShape& t) {
    return is_free || fits(config_of(t), given.config) ? tile_time(p, given, gpu, t) : HUGE_VAL;
  };
  return *std::min_element(tiles.begin(), tiles.end(),
                           [&](const auto& x, const auto& y) { return time(x) < time(y); });
}

// Adds what best_tile() weighs, as Rung::weigh does.
template <class ConfigOf>
void weigh_tiles(op::Candidates<Config>& all, const Params& p, const Given& given,
                 const op::Gpu& gpu, std::span<const TileShape> tiles, const ConfigOf& config_of) {
  for (const bool wants_any : {false, true}) {
    for (const TileShape& t : tiles) {
      const Config c = config_of(t);
      const Load load = load_of(num_tiles(p, given, c.block_m, tile_columns(c)), gpu);
      if (wants_any || fits(c, given.config)) all.add({c, 0, load.rounds, load.busy});
    }
    if (all.size() > 0) return;
  }
}

// The rungs that take any strides read single elements, so one kernel serves every alignment.
inline Choice any_strides(const Params& p, const Given& given, const Config& tile) {
  Config c = for_call(p, given, tile);
  c.a_vector = c.b_vector = c.c_vector = c.d_vector = 1;
  return choice({}, start(p, given, c));
}

// A thread has the elements of both halves that one output needs. Its sums are float32, so one
// kernel serves whatever becomes of those of tensor cores.
inline Choice naive(const Params& p, const Given& given, const op::Gpu&) {
  Config tile = element_tile(kNaiveTile);
  if (given.gated) tile.block_n *= 2;
  Given any = given;
  any.promotion = Promotion::none;
  return any_strides(p, any, tile);
}

inline Choice coalesced(const Params& p, const Given& given, const op::Gpu&) {
  if (given.is_byte()) return op::refuse(kTakesNoBytes);
  if (given.gated) return op::refuse(kGatesNothing);
  return any_strides(p, given, element_tile(kCoalescedTile));
}

inline Choice block_tiled(const Params& p, const Given& given, const op::Gpu&) {
  if (given.is_byte()) return op::refuse(kTakesNoBytes);
  if (given.gated) return op::refuse(kGatesNothing);
  return any_strides(p, given, element_tile(kBlockTile));
}

inline Choice thread_tiled(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (given.is_byte()) return op::refuse(kTakesNoBytes);
  if (given.gated) return op::refuse(kGatesNothing);
  return any_strides(p, given, thread_tile(best_tile(p, given, gpu, kThreadTiles, thread_tile)));
}

inline Choice vectorized(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (given.is_byte()) return op::refuse(kTakesNoBytes);
  if (given.gated) return op::refuse(kGatesNothing);
  const Config c =
      for_call(p, given, thread_tile(best_tile(p, given, gpu, kThreadTiles, thread_tile)));
  // Two blocks leave 128 registers a thread: enough for 16-byte accesses of float32, while single
  // elements need more for addresses and 16-bit elements more for conversion.
  const bool two_blocks = given.is_float32() && c.a_vector == 4 && c.b_vector == 4;
  return choice(unit_stride_refusal(p, given), start(p, given, c, two_blocks ? 2 : 1));
}

inline Choice async(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (!given.is_float32())
    return op::refuse("takes float32 operands: a copy in flight cannot convert");
  if (given.gated) return op::refuse(kGatesNothing);
  const TileShape& t = best_tile(p, given, gpu, kAsyncTiles, async_tile);
  Config c = for_call(p, given, async_tile(t));
  // Along k a copy is one element; elsewhere 16 bytes or one element.
  if (c.a_layout == Layout::row_major || c.a_vector < 4) c.a_vector = 1;
  if (c.b_layout == Layout::column_major || c.b_vector < 4) c.b_vector = 1;
  return choice(unit_stride_refusal(p, given),
                start(p, given, c, t.min_blocks, async_shared_bytes(c)));
}

inline Config tensor_core_config(const Params& p, const Given& given, const TileShape& t) {
  return for_call(p, given, warp_tile(t, given.operand_bytes));
}

// A choice of its own: GEMMInterface has the same tiles in another order.
inline Start tensor_core_start(const Params& p, const Given& given, const op::Gpu& gpu,
                               std::span<const TileShape> tiles = kTensorCoreTiles) {
  const auto config_of = [&](const TileShape& t) { return tensor_core_config(p, given, t); };
  const TileShape& t = best_tile(p, given, gpu, tiles, config_of);
  const Config c = config_of(t);
  return start(p, given, c, t.min_blocks, tensor_core_shared_bytes(c, given.operand_bytes));
}
template <bool tf32>
void weigh_tensor_core(op::Candidates<Config>& all, const Params& p, const Given& given,
                       const op::Gpu& gpu) {
  if (!tensor_core_refusal(p, given, tf32).empty()) return;
  weigh_tiles(all, p, given, gpu, kTensorCoreTiles,
              [&](const TileShape& t) { return tensor_core_config(p, given, t); });
}

inline Choice tensor_core(const Params& p, const Given& given, const op::Gpu& gpu) {
  return choice(tensor_core_refusal(p, given, false), tensor_core_start(p, given, gpu));
}

inline Choice tensor_core_tf32(const Params& p, const Given& given, const op::Gpu& gpu) {
  return choice(tensor_core_refusal(p, given, true), tensor_core_start(p, given, gpu));
}

inline std::span<const TileShape> swizzled_tiles(const Given& given) {
  if (given.is_float32()) return kTf32Tiles;
  if (given.is_byte()) return kByteTiles;
  return kSwizzledTiles;
}
inline Config swizzled_config(const Params& p, const Given& given, const op::Gpu& gpu,
                              const TileShape& t) {
  const int bytes = given.operand_bytes;
  Config c = for_call(p, given, warp_tile(t, bytes));
  if (c.a_vector * bytes < 16) c.a_vector = 1;  // lines end inside a chunk
  if (c.b_vector * bytes < 16) c.b_vector = 1;
  // Some architectures have less shared memory than others; two stages of any tile fit them all.
  const int stage_bytes = c.block_k * (c.block_m + c.block_n) * bytes;
  const int most = std::clamp(int(gpu.shared_bytes_per_block) / stage_bytes, 2, t.stages);
  c.stages = given.config.stages ? std::clamp(given.config.stages, 2, most) : most;
  return c;
}

inline Start swizzled_start(const Params& p, const Given& given, const op::Gpu& gpu) {
  const auto config_of = [&](const TileShape& t) { return swizzled_config(p, given, gpu, t); };
  const TileShape& t = best_tile(p, given, gpu, swizzled_tiles(given), config_of);
  const Config c = config_of(t);
  return start(p, given, c, t.min_blocks, swizzled_shared_bytes(c, given.operand_bytes));
}
template <bool tf32>
void weigh_swizzled(op::Candidates<Config>& all, const Params& p, const Given& given,
                    const op::Gpu& gpu) {
  if (!swizzled_refusal(p, given, gpu, tf32).empty()) return;
  weigh_tiles(all, p, given, gpu, swizzled_tiles(given),
              [&](const TileShape& t) { return swizzled_config(p, given, gpu, t); });
}

inline Choice swizzled_choice(const Params& p, const Given& given, const op::Gpu& gpu, bool tf32) {
  return choice(swizzled_refusal(p, given, gpu, tf32), swizzled_start(p, given, gpu));
}
inline Choice swizzled(const Params& p, const Given& given, const op::Gpu& gpu) {
  return swizzled_choice(p, given, gpu, false);
}
inline Choice swizzled_tf32(const Params& p, const Given& given, const op::Gpu& gpu) {
  return swizzled_choice(p, given, gpu, true);
}

inline Config tma_config(const Params& p, const Given& given, const op::Gpu& gpu,
                         const TileShape& t) {
  Config c = for_call(p, given, warp_tile(t, given.operand_bytes));
  c.a_vector = c.b_vector = 1;  // the copy engine takes lines of any length
  c.cluster_n = kTmaCluster;
  while (c.stages > 2 && tma_shared_bytes(c, 2) > gpu.shared_bytes_per_block) --c.stages;
  return c;
}
inline void weigh_tma(op::Candidates<Config>& all, const Params& p, const Given& given,
                      const op::Gpu& gpu) {
  if (!tma_refusal(p, given, gpu).empty()) return;
  weigh_tiles(all, p, given, gpu, kTmaTiles,
              [&](const TileShape& t) { return tma_config(p, given, gpu, t); });
}

inline Choice tma(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = tma_refusal(p, given, gpu); !why.empty()) return op::refuse(why);
  const auto config_of = [&](const TileShape& t) { return tma_config(p, given, gpu, t); };
  const TileShape &t = best_tile(p, given, gpu, kTmaTiles, config_of), &largest = kTmaTiles[0];
  const Config c = config_of(t);
  const int64_t pairs = num_tiles(p, given, c.block_m, tile_columns(c) * kTmaCluster);
  // Its tiles are large, and a pair begins and ends together: measured from 2048^3 on, where 128
  // tiles meet 132 multiprocessors, it wins.
  const double tiles = weighed(p, given, [&](const Params& q, const Given& g) {
    return double(num_tiles(q, g, largest.block.m, largest.block.n));
  });
  return choice(
      {},
      {.config = c,
       .blocks = pairs * kTmaCluster,
       .min_blocks = t.min_blocks,
       .shared_bytes = tma_shared_bytes(c, 2),
       .cluster = kTmaCluster},
      tiles < 0.9 * gpu.num_sms ? "swizzled has smaller tiles for so small a result" : "");
}

}  // namespace tensorcraft::kernel::gemm

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/params.h"

#include <string_view>

namespace tensorcraft {

// How the warpgroups that multiply share tiles: all compute parts of one, or each has its own and
// they take turns. any: as the cost model says.
enum class GemmSchedule : int { any, together, ping_pong };

// The settings of a kernel of gemm that a caller fixes; the cost model decides what is left 0. A
// rung takes the call if it has such a tile: `explain` lists a rung's tiles. From wgmma on, stages,
// cluster and schedule may differ from the list as far as registers and shared memory reach.
struct GemmConfig {
  int tile_m = 0, tile_n = 0, tile_k = 0;  // a block's tile of D, and one step along k
  int warp_m = 0, warp_n = 0;              // a warp's part of it (rungs with mma.sync, and async)
  int stages = 0;                          // steps along k that shared memory holds
  int cluster_m = 0, cluster_n = 0;        // blocks that share operands (from tma on)
  int consumers = 0;                       // warpgroups that multiply (from wgmma on)
  int split = 0;                           // parts of k, each of a block of a cluster (split_k)
  GemmSchedule schedule = GemmSchedule::any;  // how they share tiles (from wgmma on)
  friend bool operator==(const GemmConfig&, const GemmConfig&) = default;
};

using KernelOptimizer = GemmConfig;  // the name that the project's first documents give it

namespace kernel::gemm {

// Whether a Config is as the caller wants it.
constexpr bool fits(const Config& c, const GemmConfig& wanted) {
  const auto is = [](int value, int fixed) { return fixed == 0 || value == fixed; };
  const int m = c.swap ? c.block_n : c.block_m, n = c.swap ? c.block_m : c.block_n;
  return is(m, wanted.tile_m) && is(n, wanted.tile_n) && is(c.block_k, wanted.tile_k) &&
         is(c.warp_m, wanted.warp_m) && is(c.warp_n, wanted.warp_n) &&
         is(c.stages, wanted.stages) && is(c.cluster_m, wanted.cluster_m) &&
         is(c.cluster_n, wanted.cluster_n) && is(c.consumers, wanted.consumers) &&
         is(c.split, wanted.split) && is(int(c.schedule) + 1, int(wanted.schedule));
}
inline constexpr std::string_view kNoSuchTile = "has no tile as config asks";

// The most shared memory of a block of sm_90, and what a thread of a warpgroup has registers for:
// sums beside what it needs for the way to D.
inline constexpr int64_t kSharedBytes = 227 << 10;
inline constexpr int kMostSums = 160, kMostSumsOfThree = 96;

// With those of 64 rows that are promoted next, or scales of columns. split_k has no room for the
// most sums and their addresses in its exchange, nor have groups beside what finds their tiles.
inline constexpr int kMostPromotedSums = 192;
constexpr int most_sums(const Config& c) {
  if (c.promotion == Promotion::none) return kMostSums;
  const bool needs_room = c.split > 1 || c.has_groups;
  return needs_room && !has_column_scales(c) ? kMostSums : kMostPromotedSums;
}
// The registers of a thread for so many rows: sums, those of 64 rows in a block if they are
// promoted, and its columns' scales of this block and the next, with their addresses.
constexpr int num_sums(const Config& c, int rows) {
  const int of_block = c.promotion == Promotion::none ? 0 : kGroupRows;
  return (rows + of_block) * c.block_n / kWarpgroup + (has_column_scales(c) ? c.block_n * 2 : 0);
}

// Why the rungs on wgmma cannot have a Config; empty: they can.
constexpr std::string_view ring_problem(const Config& c, int operand_bytes,
                                        int64_t shared_bytes = kSharedBytes) {
  const int box = 128 / operand_bytes;
  const bool takes_turns = c.schedule == Schedule::ping_pong;
  if (c.consumers < 1 || c.consumers > 3) return "config: consumers must be 1, 2 or 3";
  if (takes_turns && c.consumers != 2) return "config: two consumers take turns (ping_pong)";
  const int rows = takes_turns ? c.block_m : c.block_m / c.consumers;
  if (rows < 1 || rows % kGroupRows != 0 || (!takes_turns && rows * c.consumers != c.block_m))
    return "config: tile_m must be 64 rows, or a multiple, for each consumer";
  if (c.block_n < 1 || c.block_n % 16 != 0 || c.block_n > 512)
    return "config: tile_n must be a multiple of 16 up to 512";
  if (c.gated && c.block_n % 32 != 0)
    return "config: tile_n must be a multiple of 32 for a gated product";
  if (c.block_k != box) return "config: tile_k must be 128 bytes of an operand";
  if (c.gated && is_by_block(c.promotion)) return "gates no product with scales by block";
  if (num_sums(c, rows) > (c.consumers == 3 ? kMostSumsOfThree : most_sums(c)))
    return "config: a consumer's part of the tile takes more registers than a thread has";
  if (c.split > 1 && (takes_turns || c.cluster_m * c.cluster_n > 1))
    return "config: the blocks of a cluster of split_k have parts of k of one tile, together";
  if (c.stages < 2) return "config: stages must be 2 or more";
  if (c.cluster_m < 1 || c.cluster_n < 1 || c.cluster_m * c.cluster_n > 4)
    return "config: a cluster has 1, 2 or 4 blocks";
  // Boxes are 128 bytes wide if the unit stride is not along k, so what a block brings and what an
  // instruction takes are whole boxes there, and 8 whole lines elsewhere.
  const int box_of_b = c.block_n / (c.gated && c.cluster_m == 1 ? 2 : 1);
  const int piece = c.block_n > 256 ? c.block_n / 2 : box_of_b;
  const int a_unit = c.a_layout == Layout::row_major ? 8 : box;
  const int b_unit = c.b_layout == Layout::column_major ? 8 : box;
  if (c.block_m % c.cluster_n != 0 || c.block_m / c.cluster_n % a_unit != 0 ||
      c.block_n % c.cluster_m != 0 || c.block_n / c.cluster_m % b_unit != 0 || piece % b_unit != 0)
    return "config: the blocks of a cluster cannot share so small a tile in this layout";
  if (ring_shared_bytes(c, operand_bytes) > shared_bytes)
    return "config: the stages take more shared memory than a block has";
  return {};
}

}  // namespace kernel::gemm
}  // namespace tensorcraft

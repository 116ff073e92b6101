// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/choice/call_plan.h"

#include <optional>

// How the rungs on wgmma are chosen and started; host only.
namespace tensorcraft::kernel::gemm {

// Which operands a tile is for: any, those of 16 and 32 bits, or those of 8.
enum class TileOperands : int { any, wide, bytes };

// A shipped shape of these rungs, and what it costs in microseconds on an H100.
struct RingTile {
  int m = 0, n = 0;  // a block's tile of the result, or of its transpose
  int stages = 0, consumers = 0;
  int cluster_m = 1, cluster_n = 1;
  Schedule schedule = Schedule::together;
  int split = 1;
  double step = 0;   // a step along k if few multiprocessors multiply
  double crowd = 0;  // how much longer it is if all do
  double tile = 0;   // a tile besides its steps
  double start = 0;  // a launch besides its tiles
  TileOperands operands = TileOperands::any;
  int swap = 0;  // of the transpose: the caller's choice
};

inline constexpr RingTile kWgmmaTile{.m = 128, .n = 256, .stages = 4, .consumers = 2};
inline constexpr RingTile kPromotedTile{.m = 128, .n = 128, .stages = 6, .consumers = 2};
inline constexpr RingTile kColumnScalesTile{.m = 128, .n = 64, .stages = 8, .consumers = 2};

// The costs are fitted to a sweep over products of language models (benchmarks/gemm_sweep.py) in 16
// bits. Of 8 bits a step along k has twice as many products in the same time. Promoted sums leave
// room for 64 x 192 outputs of a consumer, or for two times 64 x 128; scales of columns for 64 x
// 64: 256 x 128 and 128 x 64 are tiles for those.
inline constexpr RingTile kPersistentTiles[] = {
    {128, 256, 4, 2, 1, 1, Schedule::together, 1, 0.585, 0.121, 1.52, 1.98},
    {256, 128, 4, 2, 1, 2, Schedule::together, 1, 0.585, 0.121, 1.52, 2.60, TileOperands::bytes},
    {256, 128, 4, 2, 1, 1, Schedule::together, 1, 0.590, 0.130, 1.52, 1.98, TileOperands::bytes},
    {128, 320, 3, 2, 2, 1, Schedule::together, 1, 0.762, 0.139, 2.02, 2.05, TileOperands::wide},
    {128, 224, 4, 2, 1, 1, Schedule::together, 1, 0.520, 0.121, 1.57, 3.13},
    {192, 128, 4, 3, 1, 2, Schedule::together, 1, 0.352, 0.163, 1.60, 5.10, TileOperands::wide},
    {128, 192, 4, 2, 1, 1, Schedule::together, 1, 0.440, 0.106, 1.29, 2.93},
    {128, 176, 4, 2, 1, 1, Schedule::together, 1, 0.423, 0.089, 1.13, 2.10},
    {128, 160, 5, 2, 1, 1, Schedule::together, 1, 0.392, 0.074, 0.97, 2.05},
    {128, 144, 5, 2, 1, 1, Schedule::together, 1, 0.358, 0.070, 1.02, 2.13},
    {128, 128, 6, 2, 1, 1, Schedule::together, 1, 0.319, 0.064, 0.97, 1.99},
    {128, 128, 5, 2, 1, 1, Schedule::ping_pong, 1, 0.315, 0.055, 0.46, 2.12},
    {128, 128, 5, 2, 1, 2, Schedule::ping_pong, 1, 0.318, 0.055, 0.40, 2.60},
    {128, 112, 6, 2, 1, 1, Schedule::together, 1, 0.278, 0.085, 0.81, 2.48},
    {128, 64, 8, 2, 1, 1, Schedule::together, 1, 0.190, 0.110, 0.45, 1.99, TileOperands::bytes},
    {64, 192, 6, 1, 1, 1, Schedule::together, 1, 0.242, 0.108, 0.59, 1.92},
    {64, 128, 8, 1, 1, 1, Schedule::together, 1, 0.167, 0.118, 0.42, 1.63},
    {64, 96, 8, 1, 1, 1, Schedule::together, 1, 0.180, 0.071, 0.29, 1.73},
    {64, 64, 10, 1, 1, 1, Schedule::together, 1, 0.130, 0.170, 0.25, 1.38},
    {64, 32, 14, 1, 1, 1, Schedule::together, 1, 0.135, 0.175, 0.10, 1.55},
    {64, 16, 16, 1, 1, 1, Schedule::together, 1, 0.135, 0.155, 0.05, 1.60}};
inline constexpr RingTile kSplitTiles[] = {
    {128, 192, 4, 2, 1, 1, Schedule::together, 2, 0.506, 0.116, 3.49, 2.21},
    {128, 128, 5, 2, 1, 1, Schedule::together, 2, 0.368, 0.131, 2.92, 2.09},
    {64, 128, 6, 1, 1, 1, Schedule::together, 2, 0.230, 0.160, 2.12, 1.93},
    {64, 64, 10, 1, 1, 1, Schedule::together, 8, 0.060, 0.500, 2.15, 1.63},
    {64, 64, 10, 1, 1, 1, Schedule::together, 4, 0.050, 0.560, 1.85, 1.63},
    {64, 64, 10, 1, 1, 1, Schedule::together, 2, 0.100, 0.280, 1.60, 1.63},
    {64, 32, 14, 1, 1, 1, Schedule::together, 4, 0.060, 0.560, 1.90, 1.63},
    {64, 16, 16, 1, 1, 1, Schedule::together, 2, 0.100, 0.200, 2.00, 1.38}};

inline std::string_view wgmma_architecture_refusal(const op::Gpu& gpu) {
  if (gpu.architecture < 90) return "needs sm_90";
  return gpu.architecture > 90 ? "wgmma exists on sm_90 alone" : "";
}

inline std::string_view wgmma_refusal(const Params& p, const Given& given, const op::Gpu& gpu,
                                      bool tf32 = false) {
  if (const auto why = wgmma_architecture_refusal(gpu); !why.empty()) return why;
  if (const auto why = copied_refusal(p, given, gpu, tf32); !why.empty()) return why;
  return p.k == 0 ? "k is 0" : "";
}

inline std::string_view tf32_refusal(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = wgmma_refusal(p, given, gpu, true); !why.empty()) return why;
  return given.batch_invariant && a_lines(p, given).layout != Layout::row_major
             ? "batch_invariant: a is copied along k, as it is for an odd m"
             : "";
}

// Can the copy engine store D? It writes whole units of 16 bytes.
inline bool is_storable(const Params& p, const Given& given) {
  const Lines d = lines_of(p, p.d, p.m, p.n, given.result_bytes, Layout::row_major);
  return p.batch_rank <= 1 && d.are_dense() && d.length * d.element_bytes % 16 == 0 &&
         has_aligned_lines(d) && has_engine_strides(d, given.batch);
}

inline int64_t shared_bytes_of(const op::Gpu& gpu) {
  return gpu.shared_bytes_per_block ? gpu.shared_bytes_per_block : kSharedBytes;
}

// A tile with what the caller fixed that needs no other tile.
constexpr RingTile as_wanted(RingTile t, const GemmConfig& wanted) {
  if (wanted.stages) t.stages = wanted.stages;
  if (wanted.cluster_m) t.cluster_m = wanted.cluster_m;
  if (wanted.cluster_n) t.cluster_n = wanted.cluster_n;
  if (wanted.schedule != GemmSchedule::any) t.schedule = Schedule(int(wanted.schedule) - 1);
  return t;
}

// The fields of a Config that a tile decides; the call decides the rest.
constexpr Config ring_tile(const RingTile& t, int operand_bytes, int producers, int slots) {
  return {.block_m = t.m,
          .block_n = t.n,
          .block_k = 128 / operand_bytes,
          .threads = (t.consumers + producers) * kWarpgroup,
          .stages = t.stages,
          .cluster_m = t.cluster_m,
          .cluster_n = t.cluster_n,
          .consumers = t.consumers,
          .schedule = t.schedule,
          .swap = t.swap,
          .split = t.split,
          .slots = slots};
}

// Is an element of D wider than what tensor cores and stmatrix deal with?
inline bool has_wide_result(const Given& given) {
  return given.result_bytes > std::max(given.operand_bytes, 2);
}

// The Config of a tile for a call, for rungs that bring D to memory straight or in any way.
inline Config ring_config(const Params& p, const Given& given, const RingTile& t, int producers,
                          bool straight) {
  // No instruction turns wider results of a swapped tile.
  const bool takes_engine =
      is_storable(p, given) && !given.has_epilogue() && (!t.swap || !has_wide_result(given));
  const int slots = straight ? kStraight : takes_engine ? kEngineSlots : kByRows;
  Config c = for_call(p, given, ring_tile(t, given.operand_bytes, producers, slots));
  c.parts = given.splits_tf32 ? kTf32Parts : 1;
  if (t.swap) c = of_transpose(c);
  c.a_vector = c.b_vector = 1;  // the copy engine takes lines of any length
  // The copy engine stores; rows at the end of a group go one by one.
  if (c.slots == kEngineSlots && !given.grouped) c.d_vector = 1;
  return c;
}

inline Start ring_start(const Config& c, const Given& given, int64_t blocks) {
  return {.config = c,
          .blocks = blocks,
          .shared_bytes = ring_shared_bytes(c, given.operand_bytes),
          .cluster = c.cluster_m * c.cluster_n * c.split};
}

// One tile for every call, but for what the caller fixed.
inline Choice one_tile(const Params& p, const Given& given, const op::Gpu& gpu, int producers) {
  if (const auto why = wgmma_refusal(p, given, gpu); !why.empty()) return op::refuse(why);
  if (given.config.cluster_m > 1 || given.config.cluster_n > 1)
    return op::refuse("config: blocks that share operands in a cluster stay, as in persistent");
  const RingTile& tile = given.promotion == Promotion::none        ? kWgmmaTile
                         : given.promotion == Promotion::by_column ? kColumnScalesTile
                                                                   : kPromotedTile;
  const Config c = ring_config(p, given, as_wanted(tile, given.config), producers, true);
  return choice(ring_problem(c, given.operand_bytes, shared_bytes_of(gpu)),
                ring_start(c, given, num_tiles(p, given, c.block_m, tile_columns(c))));
}
inline Choice wgmma(const Params& p, const Given& given, const op::Gpu& gpu) {
  return one_tile(p, given, gpu, 0);
}
inline Choice warp_specialized(const Params& p, const Given& given, const op::Gpu& gpu) {
  return one_tile(p, given, gpu, 1);
}

// Every cluster takes tiles until none is left.
struct Walk {
  int64_t tiles;     // of a cluster
  int64_t clusters;  // that run at once
  int64_t rounds() const { return div_ceil(tiles, clusters); }
};
inline Walk walk_of(const Params& p, const Given& given, const op::Gpu& gpu, const RingTile& t) {
  const int m = t.m * t.cluster_m, n = t.n * t.cluster_n / (given.gated ? 2 : 1);
  const int cluster = t.cluster_m * t.cluster_n * t.split;
  const int64_t tiles = num_tiles(p, given, t.swap ? n : m, t.swap ? m : n);
  const int64_t room = std::max(gpu.num_sms, cluster) / cluster;
  return {tiles, std::clamp<int64_t>(tiles, 1, room)};
}

// The share of the walk's time that multiprocessors compute on average.
inline double busy_share(const Walk& walk, const op::Gpu& gpu, const RingTile& t) {
  const double blocks = double(walk.tiles) * t.cluster_m * t.cluster_n * t.split;
  return std::min(1.0, blocks / (double(walk.rounds()) * std::max(gpu.num_sms, 1)));
}

// The steps along k: 128 bytes of both operands take as long to multiply in tf32 as in 16 bits.
inline int64_t ring_steps(const Params& p, const Given& given) {
  return div_ceil(p.k * given.operand_bytes, int64_t(128)) *
         (given.splits_tf32 ? kTf32Products : 1);
}

// The least that memory takes for a product's bytes, in microseconds of an H100.
inline double memory_us(const Params& p, const Given& given) {
  constexpr double kBytesInOne = 3.0e6;
  const auto size = [&](const Matrix& x, int64_t rows, int64_t cols, int bytes) {
    const bool is_shared = p.batch_rank == 0 || x.batch_strides[0] == 0;
    return double(rows) * double(cols) * bytes * (is_shared ? 1 : double(given.batch));
  };
  return (size(p.a, p.m, p.k, given.operand_bytes) + size(p.b, p.k, p.n, given.operand_bytes) +
          size(p.d, p.m, p.n, given.result_bytes)) /
         kBytesInOne;
}

// The cost of a tile on its way to D beside a plain one, in microseconds of an H100, by the rows of
// one consumer: all finish at once. With ping_pong the other one multiplies meanwhile, which takes
// half of that away. Of tiles up to 64 x 64 it is nothing worth comparing.
inline double finish_us(const Given& given, const RingTile& t) {
  if (t.m * t.n <= 64 * 64) return 0;
  using enum Activation;
  const bool in_turns = t.schedule == Schedule::ping_pong;
  const double of_activation = given.activation == none ? 0 : given.activation == relu ? 0.5 : 1.5;
  const double us = (given.has_c ? 5 : 0) + of_activation +
                    (given.has_bias || given.has_scales || given.has_codes() ? 1.8 : 0) +
                    (has_wide_result(given) ? 4 : 0);
  const int rows = in_turns ? t.m : t.m / t.consumers;
  return us * rows * t.n / (64 * 256) * (in_turns ? 0.5 : 1);
}

// How much longer promotion makes a step: a consumer waits for its own products before it adds
// them, and nobody multiplies meanwhile if it is the only one that does. Measured with tiles of 128
// x 128 in turns and of 64 x 64: 1.27 to 1.43. Few rows wait for the weights instead: with the
// factor up to 128 of them took larger tiles, and up to 1.44 times as long.
inline double promotion_factor(const Params& p, const Given& given, const RingTile& t) {
  constexpr int64_t kFewRows = 128;
  if (given.promotion == Promotion::none || std::min(p.m, p.n) <= kFewRows) return 1;
  const bool multiplies_alone = t.consumers == 1 || t.schedule == Schedule::ping_pong;
  return multiplies_alone ? 1.4 : 1;
}

// The time that a tile takes for a call, in microseconds of an H100: the multiprocessor with most
// tiles ends last.
inline double predicted_us(const Params& p, const Given& given, const op::Gpu& gpu,
                           const RingTile& t) {
  const Walk walk = walk_of(p, given, gpu, t);
  const double rounds = double(walk.rounds()), steps = double(ring_steps(p, given)) / t.split;
  const double step = (t.step + t.crowd * busy_share(walk, gpu, t)) * promotion_factor(p, given, t);
  const double multiply = steps * step + t.tile;
  return std::max(rounds * (multiply + finish_us(given, t)), memory_us(p, given)) + t.start;
}

// Is half of a tile or more outside the result, while narrower ones exist? Memory sets the pace of
// such products, and what is outside takes the place of stages.
inline bool is_mostly_outside(const Params& p, const Given& given, const RingTile& t) {
  const int m = t.swap ? t.n : t.m, n = (t.swap ? t.m : t.n) / (given.gated ? 2 : 1);
  return m >= 2 * round_up(p.m, 16) || n >= 2 * round_up(p.n, 16);
}

// wgmma reads tf32 from shared memory along k only. The operand that has block_m may come in
// registers, which are read while the other consumer's products run. Empty: a Config is so.
constexpr std::string_view tf32_problem(const Config& c, int operand_bytes) {
  if (operand_bytes != 4) return {};
  if (c.b_layout != Layout::column_major)
    return "no tile has b or a along k in this layout, as wgmma reads tf32";
  const bool has_registers = c.a_layout == Layout::column_major;
  return has_registers && (c.consumers == 1 || c.schedule != Schedule::together)
             ? "config: operands in registers need two consumers or three, together"
             : "";
}

// Groups with scales by square, measured with 20 rows each and with thousands: rows in the role of
// columns have a scale each, which every thread reads in every step; a tile that squares divide
// looks up for each column which one it is in; and few rows wait for L2, which gives a tile all of
// its lines again.
inline double grouped_squares_us(const Params& p, const Given& given, const op::Gpu& gpu,
                                 const RingTile& t, double us) {
  constexpr int64_t kFewRows = 64;
  constexpr double kBytesOfL2InOne = 4.5e6;
  if (!given.grouped || given.promotion != Promotion::by_square) return us;
  if (t.swap) us *= 1 + 0.35 * std::min(1.0, t.n / 32.0);
  if (!t.swap && kScaleBlock % t.n != 0) us *= 1.3;
  if (p.m > kFewRows) return us;
  const double lines = double(walk_of(p, given, gpu, t).tiles) * (t.m + t.n);
  return std::max(us, lines * double(ring_steps(p, given)) * 128 / kBytesOfL2InOne);
}

// The time of a tile for a call, as tiles are compared.
inline double compared_us(const Params& p, const Given& given, const op::Gpu& gpu,
                          const RingTile& t) {
  return weighed(p, given, [&](const Params& q, const Given& g) {
    const double us = grouped_squares_us(q, g, gpu, t, predicted_us(q, g, gpu, t));
    return us * (is_mostly_outside(q, g, t) ? 1.3 : 1);
  });
}

// A tile that a rung can have for a call, and how it is compared.
struct WeighedTile {
  RingTile tile{};
  Config config{};
  double us = 0;
};
// Calls use(tile) for each, as it is and of the transpose; why the rung has no others.
template <class Use>
std::string_view for_each_tile(const Params& p, const Given& given, const op::Gpu& gpu,
                               std::span<const RingTile> tiles, const GemmConfig& wanted,
                               const Use& use) {
  const int orientations = given.gated ? 1 : 2;  // a gated tile has columns of both halves of B
  std::string_view why = kNoSuchTile;
  for (const RingTile& row : tiles) {
    if (row.operands == (given.is_byte() ? TileOperands::wide : TileOperands::bytes)) continue;
    RingTile t = as_wanted(row, wanted);
    for (t.swap = 0; t.swap < orientations; ++t.swap) {
      const Config c = ring_config(p, given, t, 1, t.split > 1);
      if (!fits(c, wanted)) continue;
      auto problem = tf32_problem(c, given.operand_bytes);
      if (problem.empty()) problem = ring_problem(c, given.operand_bytes, shared_bytes_of(gpu));
      if (problem.empty())
        use({t, c, compared_us(p, given, gpu, t)});
      else
        why = problem;
    }
  }
  return why;
}

inline std::string_view split_refusal(const Params& p, const Given& given) {
  if (given.gated) return kGatesNothing;
  if (given.batch_invariant) return kNotInvariant;
  return p.k * given.operand_bytes <= 128 ? "k has one step, which cannot be split" : "";
}

// Adds what the rungs with tables weigh.
inline void weigh_ring(op::Candidates<Config>& all, const Params& p, const Given& given,
                       const op::Gpu& gpu, std::span<const RingTile> tiles) {
  for (const GemmConfig& wanted : {given.config, GemmConfig{}}) {
    for_each_tile(p, given, gpu, tiles, wanted, [&](const WeighedTile& w) {
      const Walk walk = walk_of(p, given, gpu, w.tile);
      all.add({w.config, w.us, walk.rounds(), busy_share(walk, gpu, w.tile)});
    });
    if (all.size() > 0) return;
  }
}
inline void weigh_persistent(op::Candidates<Config>& all, const Params& p, const Given& given,
                             const op::Gpu& gpu) {
  if (wgmma_refusal(p, given, gpu).empty()) weigh_ring(all, p, given, gpu, kPersistentTiles);
}
inline void weigh_persistent_tf32(op::Candidates<Config>& all, const Params& p, const Given& given,
                                  const op::Gpu& gpu) {
  if (tf32_refusal(p, given, gpu).empty()) weigh_ring(all, p, given, gpu, kPersistentTiles);
}
inline void weigh_split_k(op::Candidates<Config>& all, const Params& p, const Given& given,
                          const op::Gpu& gpu) {
  if (wgmma_refusal(p, given, gpu).empty() && split_refusal(p, given).empty())
    weigh_ring(all, p, given, gpu, kSplitTiles);
}

// The tile with the least predicted time; none: why.
struct BestTile {
  std::optional<WeighedTile> tile;
  std::string_view why;
};
inline BestTile best_ring_tile(const Params& p, const Given& given, const op::Gpu& gpu,
                               std::span<const RingTile> tiles) {
  BestTile best;
  best.why = for_each_tile(p, given, gpu, tiles, given.config, [&](const WeighedTile& w) {
    if (!best.tile || w.us < best.tile->us) best.tile = w;
  });
  return best;
}

inline Start persistent_start(const Params& p, const Given& given, const op::Gpu& gpu,
                              const WeighedTile& best) {
  const Config& c = best.config;
  const int64_t clusters = walk_of(p, given, gpu, best.tile).clusters;
  return ring_start(c, given, clusters * c.cluster_m * c.cluster_n);
}

inline Choice persistent(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = wgmma_refusal(p, given, gpu); !why.empty()) return op::refuse(why);
  const BestTile best = best_ring_tile(p, given, gpu, kPersistentTiles);
  if (!best.tile) return op::refuse(best.why);
  bool prefers_split = false;
  if (split_refusal(p, given).empty()) {
    const BestTile split = best_ring_tile(p, given, gpu, kSplitTiles);
    prefers_split = split.tile && split.tile->us < 0.97 * best.tile->us;
  }
  return choice({}, persistent_start(p, given, gpu, *best.tile),
                prefers_split ? "split_k uses more multiprocessors for so few tiles" : "");
}

inline Choice persistent_tf32(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = tf32_refusal(p, given, gpu); !why.empty()) return op::refuse(why);
  const BestTile best = best_ring_tile(p, given, gpu, kPersistentTiles);
  if (!best.tile) return op::refuse(best.why);
  return choice({}, persistent_start(p, given, gpu, *best.tile));
}

inline Choice split_k(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = wgmma_refusal(p, given, gpu); !why.empty()) return op::refuse(why);
  if (const auto why = split_refusal(p, given); !why.empty()) return op::refuse(why);
  const BestTile best = best_ring_tile(p, given, gpu, kSplitTiles);
  if (!best.tile) return op::refuse(best.why);
  const Config& c = best.tile->config;
  return choice({}, ring_start(c, given, walk_of(p, given, gpu, best.tile->tile).tiles * c.split));
}

}  // namespace tensorcraft::kernel::gemm

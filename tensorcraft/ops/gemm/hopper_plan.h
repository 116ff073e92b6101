// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/mma_plan.h"

#include <optional>

// How the rungs on wgmma are chosen and started; host only. mma_plan.h has what all rungs share.
namespace tensorcraft::kernel::gemm {

// A shipped shape of these rungs, and what it costs in microseconds on an H100.
struct RingTile {
  int m, n;  // a block's tile of D
  int stages, consumers;
  int cluster_m = 1, cluster_n = 1;
  Schedule schedule = Schedule::together;
  double step = 0;   // a step along k if few multiprocessors multiply
  double crowd = 0;  // how much longer it is if all do
  double tile = 0;   // a tile besides its steps
  double start = 0;  // a launch besides its tiles
};

inline constexpr RingTile kWgmmaTile{.m = 128, .n = 256, .stages = 4, .consumers = 2};

// The costs are of a fit to a sweep (benchmarks/gemm_sweep.py).
inline constexpr RingTile kPersistentTiles[] = {
    {128, 256, 4, 2, 1, 1, Schedule::together, 0.537, 0.211, 1.66, 2.44},
    {128, 256, 4, 2, 1, 2, Schedule::together, 0.541, 0.207, 1.69, 3.28},
    {128, 320, 3, 2, 2, 1, Schedule::together, 0.730, 0.204, 2.85, 2.16},
    {192, 128, 4, 3, 1, 2, Schedule::together, 0.384, 0.187, 1.20, 5.14},
    {128, 192, 4, 2, 1, 1, Schedule::together, 0.408, 0.157, 1.48, 2.15},
    {128, 128, 5, 2, 1, 1, Schedule::ping_pong, 0.290, 0.087, 0.81, 2.43},
    {128, 128, 6, 2, 1, 1, Schedule::together, 0.274, 0.109, 1.02, 2.35},
    {64, 256, 5, 1, 1, 1, Schedule::together, 0.300, 0.086, 1.29, 1.88},
    {64, 192, 6, 1, 1, 1, Schedule::together, 0.175, 0.159, 0.70, 2.70},
    {64, 128, 8, 1, 1, 1, Schedule::together, 0.092, 0.183, 0.16, 2.75},
    {128, 64, 8, 2, 1, 1, Schedule::together, 0.094, 0.220, 0.01, 2.72},
    {64, 64, 8, 1, 1, 1, Schedule::together, 0.122, 0.067, 0.28, 2.24}};

inline std::string_view wgmma_refusal(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (gpu.architecture < 90) return "needs sm_90";
  if (gpu.architecture > 90) return "wgmma exists on sm_90 alone";
  if (const auto why = tma_refusal(p, given, gpu); !why.empty()) return why;
  return p.k == 0 ? "k is 0" : "";
}

// Can the copy engine store D? It writes whole units of 16 bytes.
inline bool is_storable(const Params& p, const Given& given) {
  const Lines d = lines_of(p, p.d, p.m, p.n, given.result_bytes, Layout::row_major);
  return d.are_dense() && d.length * d.element_bytes % 16 == 0 && has_aligned_lines(d) &&
         has_engine_strides(d, given.batch);
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

// What a tile gives of a Config; the rest is the call's.
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
          .slots = slots};
}

// The Config of a tile for a call. With `slots` D goes through shared memory if the copy engine can
// store it.
inline Config ring_config(const Params& p, const Given& given, const RingTile& t, int producers,
                          int slots) {
  Config c = for_call(
      p, given, ring_tile(t, given.operand_bytes, producers, is_storable(p, given) ? slots : 0));
  c.a_vector = c.b_vector = 1;  // the copy engine takes lines of any length
  if (c.slots > 0) c.d_vector = 1;
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
  const Config c = ring_config(p, given, as_wanted(kWgmmaTile, given.config), producers, 0);
  return choice(ring_problem(c, given.operand_bytes, shared_bytes_of(gpu)),
                ring_start(c, given, num_tiles(p, given, c.block_m, c.block_n)));
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
  const int cluster = t.cluster_m * t.cluster_n;
  const int64_t tiles = num_tiles(p, given, t.m * t.cluster_m, t.n * t.cluster_n);
  const int64_t room = std::max(gpu.num_sms, cluster) / cluster;
  return {tiles, std::clamp<int64_t>(tiles, 1, room)};
}

// The share of the walk's time that multiprocessors compute on average.
inline double busy_share(const Walk& walk, const op::Gpu& gpu, const RingTile& t) {
  const double blocks = double(walk.tiles) * t.cluster_m * t.cluster_n;
  return std::min(1.0, blocks / (double(walk.rounds()) * std::max(gpu.num_sms, 1)));
}

// The time that a tile takes for a call, in microseconds of an H100: the multiprocessor with most
// tiles ends last.
inline double predicted_us(const Params& p, const Given& given, const op::Gpu& gpu,
                           const RingTile& t) {
  const Walk walk = walk_of(p, given, gpu, t);
  const double rounds = double(walk.rounds()), steps = double(div_ceil(p.k, 64));
  return rounds * (steps * (t.step + t.crowd * busy_share(walk, gpu, t)) + t.tile) + t.start;
}

// A tile that persistent can have for a call, and why it cannot have others.
struct WeighedTile {
  RingTile tile;
  Config config;
  double us;
};
template <class Use>
std::string_view for_each_tile(const Params& p, const Given& given, const op::Gpu& gpu,
                               std::span<const RingTile> tiles, const GemmConfig& wanted,
                               const Use& use) {
  std::string_view why = kNoSuchTile;
  for (const RingTile& row : tiles) {
    const RingTile t = as_wanted(row, wanted);
    const Config c = ring_config(p, given, t, 1, 2);
    if (!fits(c, wanted)) continue;
    const auto problem = ring_problem(c, given.operand_bytes, shared_bytes_of(gpu));
    if (problem.empty())
      use(WeighedTile{t, c, predicted_us(p, given, gpu, t)});
    else
      why = problem;
  }
  return why;
}

inline void weigh_persistent(op::Candidates<Config>& all, const Params& p, const Given& given,
                             const op::Gpu& gpu) {
  if (!wgmma_refusal(p, given, gpu).empty()) return;
  for (const GemmConfig& wanted : {given.config, GemmConfig{}}) {
    for_each_tile(p, given, gpu, kPersistentTiles, wanted, [&](const WeighedTile& w) {
      const Walk walk = walk_of(p, given, gpu, w.tile);
      all.add({w.config, w.us, walk.rounds(), busy_share(walk, gpu, w.tile)});
    });
    if (all.size() > 0) return;
  }
}

// The choice among some tiles, of which launchers have fewer.
inline Choice persistent_of(const Params& p, const Given& given, const op::Gpu& gpu,
                            std::span<const RingTile> tiles) {
  if (const auto why = wgmma_refusal(p, given, gpu); !why.empty()) return op::refuse(why);
  std::optional<WeighedTile> best;
  const auto why = for_each_tile(p, given, gpu, tiles, given.config, [&](const WeighedTile& w) {
    if (!best || w.us < best->us) best = w;
  });
  if (!best) return op::refuse(why);
  const Config& c = best->config;
  return choice(
      {}, ring_start(c, given,
                     walk_of(p, given, gpu, best->tile).clusters * c.cluster_m * c.cluster_n));
}
inline Choice persistent(const Params& p, const Given& given, const op::Gpu& gpu) {
  return persistent_of(p, given, gpu, kPersistentTiles);
}

}  // namespace tensorcraft::kernel::gemm

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/mma_plan.h"

#include <utility>

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

inline std::string_view wgmma_architecture_refusal(const op::Gpu& gpu) {
  if (gpu.architecture < 90) return "needs sm_90";
  return gpu.architecture > 90 ? "wgmma exists on sm_90 alone" : "";
}

inline std::string_view wgmma_refusal(const Params& p, const Given& given, const op::Gpu& gpu,
                                      bool tf32 = false) {
  if (const auto why = wgmma_architecture_refusal(gpu); !why.empty()) return why;
  if (const auto why = tma_refusal(p, given, gpu, tf32); !why.empty()) return why;
  return p.k == 0 ? "k is 0" : "";
}

// Can the copy engine store D? It writes whole units of 16 bytes.
inline bool is_storable(const Params& p, const Given& given, Layout layout) {
  const Lines d = lines_of(p, p.d, p.m, p.n, given.result_bytes, layout);
  return p.batch_rank <= 1 && d.are_dense() && d.length * d.element_bytes % 16 == 0 &&
         has_aligned_lines(d) && has_engine_strides(d, given.batch);
}

// wgmma reads tf32 along k only, but A may come in registers, so A along m is read into them. For B
// along n the two exchange their roles: D^T = B^T A^T.
inline bool is_exchanged(const Params& p, const Given& given) {
  return given.is_float32() && a_lines(p, given).layout == Layout::row_major &&
         b_lines(p, given).layout == Layout::row_major;
}
inline Params exchanged(Params p) {
  const auto transposed = [](Matrix x) {
    std::swap(x.row_stride, x.col_stride);
    return x;
  };
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  for (Matrix* x : {&p.a, &p.b, &p.c, &p.d}) *x = transposed(*x);
  return p;
}

constexpr bool has_a_registers(Layout a, int operand_bytes) {
  return operand_bytes == 4 && a == Layout::column_major;
}

// Boxes are 128 bytes wide where the unit stride is not along k, so what a block brings and what an
// instruction takes are whole boxes there.
constexpr bool is_legal(const RingTile& t, Layout a, Layout b, int operand_bytes) {
  const int box = 128 / operand_bytes;
  const int piece = t.n > 256 ? t.n / 2 : t.n;
  // Reading A into registers takes turns with the other consumer's products.
  if (has_a_registers(a, operand_bytes) && (t.consumers == 1 || t.schedule != Schedule::together))
    return false;
  return (a == Layout::row_major || t.m / t.cluster_n % box == 0) &&
         (b == Layout::column_major || (t.n / t.cluster_m % box == 0 && piece % box == 0));
}

// The Config of a tile for a call. With `slots` D goes through shared memory if the copy engine can
// store it.
inline Config ring_config(const Params& p, const Given& given, const RingTile& t, int producers,
                          int slots) {
  Config c = for_call(p, given,
                      {.block_m = t.m,
                       .block_n = t.n,
                       .block_k = 128 / given.operand_bytes,
                       .threads = (t.consumers + producers) * kWarpgroup,
                       .stages = t.stages,
                       .cluster_m = t.cluster_m,
                       .cluster_n = t.cluster_n,
                       .consumers = t.consumers,
                       .schedule = t.schedule,
                       .parts = given.splits_tf32 ? kTf32Parts : 1});
  c.a_vector = c.b_vector = 1;  // the copy engine takes lines of any length
  c.slots = is_storable(p, given, Layout::row_major) ? slots : 0;
  if (c.slots == 0 && has_a_registers(c.a_layout, given.operand_bytes) &&
      is_storable(p, given, Layout::column_major)) {
    c.slots = slots;
    c.d_layout = Layout::column_major;
  }
  if (c.slots > 0) c.d_vector = 1;
  return c;
}

inline Start ring_start(const Config& c, const Given& given, int64_t blocks) {
  return {.config = c,
          .blocks = blocks,
          .shared_bytes = ring_shared_bytes(c, given.operand_bytes),
          .cluster = c.cluster_m * c.cluster_n * c.split};
}

inline Choice wgmma(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = wgmma_refusal(p, given, gpu); !why.empty()) return op::refuse(why);
  const Config c = ring_config(p, given, kWgmmaTile, 0, 0);
  return choice({}, ring_start(c, given, num_tiles(p, given, c.block_m, c.block_n)));
}

inline Choice warp_specialized(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = wgmma_refusal(p, given, gpu); !why.empty()) return op::refuse(why);
  const Config c = ring_config(p, given, kWgmmaTile, 1, 0);
  return choice({}, ring_start(c, given, num_tiles(p, given, c.block_m, c.block_n)));
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

// The steps along k: 128 bytes of both operands take as long to multiply in tf32 as in 16 bits.
inline int64_t ring_steps(const Params& p, const Given& given) {
  return div_ceil(p.k * given.operand_bytes, int64_t(128)) *
         (given.splits_tf32 ? kTf32Products : 1);
}

// The time that a tile takes for a call, in microseconds of an H100: the multiprocessor with most
// tiles ends last.
inline double predicted_us(const Params& p, const Given& given, const op::Gpu& gpu,
                           const RingTile& t) {
  const Walk walk = walk_of(p, given, gpu, t);
  const double rounds = double(walk.rounds()), steps = double(ring_steps(p, given));
  const double blocks = double(walk.tiles) * t.cluster_m * t.cluster_n;
  const double busy = std::min(1.0, blocks / (rounds * std::max(gpu.num_sms, 1)));
  return rounds * (steps * (t.step + t.crowd * busy) + t.tile) + t.start;
}

inline const RingTile& best_ring_tile(const Params& p, const Given& given, const op::Gpu& gpu) {
  const Layout a = a_lines(p, given).layout, b = b_lines(p, given).layout;
  const RingTile* best = nullptr;
  double least = 0;
  for (const RingTile& t : kPersistentTiles) {
    if (!is_legal(t, a, b, given.operand_bytes)) continue;
    const double us = predicted_us(p, given, gpu, t);
    if (best && us >= least) continue;
    best = &t;
    least = us;
  }
  return *best;
}

inline Start persistent_start(const Params& p, const Given& given, const op::Gpu& gpu) {
  const RingTile& t = best_ring_tile(p, given, gpu);
  const Config c = ring_config(p, given, t, 1, 2);
  return ring_start(c, given, walk_of(p, given, gpu, t).clusters * c.cluster_m * c.cluster_n);
}

inline Choice persistent(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = wgmma_refusal(p, given, gpu); !why.empty()) return op::refuse(why);
  return choice({}, persistent_start(p, given, gpu));
}

inline Choice persistent_tf32(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = wgmma_refusal(p, given, gpu, true); !why.empty()) return op::refuse(why);
  if (is_exchanged(p, given)) {
    if (given.has_bias) return op::refuse("b has its unit stride along n, so bias would be by row");
    const Params q = exchanged(p);
    if (b_lines(q, given).layout != Layout::column_major)
      return op::refuse("a and b have one row and one column");
    return choice({}, persistent_start(q, given, gpu));
  }
  if (b_lines(p, given).layout != Layout::column_major)
    return op::refuse("neither a nor b has its unit stride along k, as wgmma reads one in tf32");
  return choice({}, persistent_start(p, given, gpu));
}

}  // namespace tensorcraft::kernel::gemm

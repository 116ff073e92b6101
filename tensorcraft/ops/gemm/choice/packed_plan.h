// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/choice/hopper_plan.h"
#include "tensorcraft/ops/gemm/choice/mma_plan.h"

// How persistent is chosen for operands that are packed first: those that the copy engine cannot
// walk, float32 that is not along k, and float32 in two parts; host only.
namespace tensorcraft::kernel::gemm {

inline constexpr int64_t kPackAlignment = 256;  // of a copy in the workspace, in bytes

// The copy that pack makes of an operand.
struct PackedOperand {
  bool is_needed;
  int64_t lines, entries, part;
  int parts, element_bytes;
  int64_t next_line() const { return parts * part; }
  int64_t bytes() const {
    return is_needed ? round_up(lines * entries * next_line() * element_bytes, kPackAlignment) : 0;
  }
};

// Does every entry of the batch have the same matrix?
inline bool is_shared(const Params& p, const Matrix& x) {
  for (int i = 0; i < p.batch_rank; ++i)
    if (p.batch_shape[i] > 1 && x.batch_strides[i] != 0) return false;
  return true;
}

// `layout`: of the operand as the product reads it, if it is not copied.
inline PackedOperand packed_operand(const Params& p, const Given& given, const Lines& x,
                                    Layout along_k, Layout layout) {
  const bool is_walkable = x.are_dense() && has_aligned_lines(x) &&
                           has_engine_strides(x, given.batch) &&
                           (p.batch_rank <= 1 || is_shared(p, x.matrix));
  const int parts = given.splits_tf32 ? kTf32Parts : 1;
  return {.is_needed = !is_walkable || parts > 1 || x.layout != layout,
          .lines = along_k == Layout::row_major ? p.m
                   : given.gated                ? 2 * p.n
                                                : p.n,
          .entries = is_shared(p, x.matrix) ? 1 : given.batch,
          .part = part_length(p.k, parts, given.operand_bytes),
          .parts = parts,
          .element_bytes = given.operand_bytes};
}

// The copies of both operands, and the call that the product sees; they have no address yet.
struct Packing {
  PackedOperand a, b;

  template <class AnyParams>
  AnyParams apply(AnyParams p) const {
    const auto next_entry = [](const PackedOperand& x) {
      return x.entries > 1 ? x.lines * x.next_line() : 0;
    };
    if (a.is_needed)
      p.a = {.data = nullptr,
             .row_stride = a.next_line(),
             .col_stride = 1,
             .batch_strides = {next_entry(a)}};
    if (b.is_needed)
      p.b = {.data = nullptr,
             .row_stride = 1,
             .col_stride = b.next_line(),
             .batch_strides = {next_entry(b)}};
    return p;
  }
};
inline Packing packing_of(const Params& p, const Given& given, Layout a_layout, Layout b_layout) {
  return {packed_operand(p, given, a_lines(p, given), Layout::row_major, a_layout),
          packed_operand(p, given, b_lines(p, given), Layout::column_major, b_layout)};
}
// The operands that rungs copy: 8-bit operands that are not along k. A may come in
// registers, so of float32 B is along k. Other tiles do without registers, and so does
// batch_invariant, for which some A are copied along k.
inline Packing packing_of(const Params& p, const Given& given) {
  const bool all_along_k = given.is_byte() || (given.is_float32() && given.batch_invariant);
  return packing_of(
      p, given, all_along_k ? Layout::row_major : a_lines(p, given).layout,
      given.is_float32() || given.is_byte() ? Layout::column_major : b_lines(p, given).layout);
}
// The operands that were copied of a call for which a rung has this Config.
inline Packing packing_for(const Params& p, const Given& given, const Config& c) {
  return c.swap ? packing_of(p, given, transposed(c.b_layout), transposed(c.a_layout))
                : packing_of(p, given, c.a_layout, c.b_layout);
}

// Neighbours that one access of pack reads: 16 bytes of them or one.
inline PackConfig pack_config(const Lines& x, Layout along_k, int parts) {
  const int most = 16 / x.element_bytes;
  return {.layout = x.layout == along_k ? Layout::row_major : Layout::column_major,
          .vector = vector_of(x, most) == most ? most : 1,
          .parts = parts};
}
inline int64_t pack_blocks(const PackedOperand& x) {
  return div_ceil(x.lines, int64_t(kPackTile)) * div_ceil(x.part, int64_t(kPackTile)) * x.entries;
}

// The time of a copy, in microseconds: a launch, and each element read and written.
inline double pack_us(const PackedOperand& x) {
  constexpr double kLaunchUs = 2, kBytesPerUs = 2.5e6;
  if (!x.is_needed) return 0;
  const double elements = double(x.lines) * double(x.part) * double(x.entries);
  return kLaunchUs + elements * x.element_bytes * (1 + x.parts) / kBytesPerUs;
}

// The time of the best later rung for these operands: the tiles of the busiest multiprocessor, with
// so many FLOP a microsecond as it was measured to have with the largest. Copies have to beat that
// without a launch, of which a later rung has fewer.
struct LaterRung {
  std::span<const TileShape> tiles;
  double flop_per_us;
};
inline LaterRung later_rung(const Params& p, const Given& given) {
  if (given.is_byte() || !unit_stride_refusal(p, given).empty()) return {kThreadTiles, 0.15e6};
  if (given.splits_tf32) return {kAsyncTiles, 0.38e6};
  if (given.is_float32()) return {kTf32Tiles, 1.06e6};
  const bool is_aligned =
      has_aligned_lines(a_lines(p, given)) && has_aligned_lines(b_lines(p, given));
  return is_aligned ? LaterRung{kSwizzledTiles, 3.1e6} : LaterRung{kTensorCoreTiles, 1.06e6};
}
inline double later_us(const Params& p, const Given& given, const op::Gpu& gpu) {
  const LaterRung rung = later_rung(p, given);
  const TileShape& t = best_tile(p, given, gpu, rung.tiles, thread_tile);
  const int64_t tiles = num_tiles(p, given, t.block.m, t.block.n / (given.gated ? 2 : 1));
  const int64_t rounds = div_ceil(tiles, int64_t(std::max(gpu.num_sms, 1)));
  const double outputs = double(rounds) * t.block.m * t.block.n / t.rate;
  return outputs * 2 * double(p.k) / rung.flop_per_us;
}

// A choice of what is packed if `why_not` is empty.
inline Choice packed_choice(std::string_view why_not, const Params& p, const Given& given,
                            const op::Gpu& gpu) {
  if (!why_not.empty()) return op::refuse(why_not);
  if (p.k == 0) return op::refuse("k is 0");
  if (const auto why = wgmma_architecture_refusal(gpu); !why.empty()) return op::refuse(why);
  const Packing packing = packing_of(p, given);
  const PackedOperand &a = packing.a, &b = packing.b;
  if (!a.is_needed && !b.is_needed) return op::refuse("the copy engine takes a and b as they are");
  const Params q = packing.apply(p);
  for (const Lines& x : {a_lines(q, given), b_lines(q, given)})
    if (!has_engine_strides(x, given.batch) || x.next_line > int64_t(1) << 30)
      return op::refuse("a copy of a or b would be too large for the copy engine");
  if (std::max(pack_blocks(a), pack_blocks(b)) > op::kMaxBlocks)
    return op::refuse("needs 2^31 blocks or more");
  const BestTile best = best_ring_tile(q, given, gpu, kPersistentTiles);
  if (!best.tile) return op::refuse(best.why);
  const double us = pack_us(a) + pack_us(b) + best.tile->us;
  // A later rung sums in another order than persistent, which takes some calls of one row.
  const bool is_slower = !given.batch_invariant && us > later_us(p, given, gpu);
  return choice({}, persistent_start(q, given, gpu, *best.tile),
                is_slower ? "copies of a or b would take longer than they save" : "");
}

inline Choice packed(const Params& p, const Given& given, const op::Gpu& gpu) {
  return packed_choice(
      given.is_float32() ? "takes 16-bit operands; for float32 there are the tf32 variants" : "", p,
      given, gpu);
}

inline Choice packed_tf32(const Params& p, const Given& given, const op::Gpu& gpu) {
  return packed_choice(!given.is_float32() ? "takes float32 operands"
                       : !given.allow_tf32
                           ? "float32 would be rounded to tf32, which allow_tf32 is not set for"
                           : "",
                       p, given, gpu);
}

inline Choice persistent_3xtf32(const Params& p, const Given& given, const op::Gpu& gpu) {
  return packed_choice(!given.splits_tf32 ? "takes float32 operands with precision 3xtf32" : "", p,
                       given, gpu);
}

template <Choice (*choose)(const Params&, const Given&, const op::Gpu&)>
void weigh_packed(op::Candidates<Config>& all, const Params& p, const Given& given,
                  const op::Gpu& gpu) {
  if (choose(p, given, gpu).refusal.empty())
    weigh_ring(all, packing_of(p, given).apply(p), given, gpu, kPersistentTiles);
}

}  // namespace tensorcraft::kernel::gemm

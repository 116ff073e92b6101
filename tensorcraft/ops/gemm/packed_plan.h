// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/hopper_plan.h"

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

inline PackedOperand packed_operand(const Params& p, const Given& given, const Lines& x,
                                    Layout along_k) {
  const bool is_walkable = x.are_dense() && has_aligned_lines(x) &&
                           has_engine_strides(x, given.batch) &&
                           (p.batch_rank <= 1 || is_shared(p, x.matrix));
  const int parts = given.splits_tf32 ? kTf32Parts : 1;
  const bool is_a = along_k == Layout::row_major;  // which may come in registers
  const bool must_be_along_k = given.is_float32() && !is_a;
  return {.is_needed = !is_walkable || parts > 1 || (must_be_along_k && x.layout != along_k),
          .lines = is_a ? p.m : p.n,
          .entries = is_shared(p, x.matrix) ? 1 : given.batch,
          .part = part_length(p.k, parts, given.operand_bytes),
          .parts = parts,
          .element_bytes = given.operand_bytes};
}
inline PackedOperand packed_a(const Params& p, const Given& given) {
  return packed_operand(p, given, a_lines(p, given), Layout::row_major);
}
inline PackedOperand packed_b(const Params& p, const Given& given) {
  return packed_operand(p, given, b_lines(p, given), Layout::column_major);
}

// The call that the product sees. The copies have no address yet.
inline Params packed_params(Params p, const Given& given) {
  const PackedOperand a = packed_a(p, given), b = packed_b(p, given);
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

// What a copy takes, in microseconds: a launch, and each element read and written.
inline double pack_us(const PackedOperand& x) {
  constexpr double kLaunchUs = 2, kBytesPerUs = 2.5e6;
  if (!x.is_needed) return 0;
  const double elements = double(x.lines) * double(x.part) * double(x.entries);
  return kLaunchUs + elements * x.element_bytes * (1 + x.parts) / kBytesPerUs;
}

// What the best later rung takes for these operands: the tiles of the busiest multiprocessor, with
// so many FLOP a microsecond as it was measured to have with the largest. Copies have to beat that
// without a launch, of which a later rung has fewer.
struct LaterRung {
  std::span<const TileShape> tiles;
  double flop_per_us;
};
inline LaterRung later_rung(const Params& p, const Given& given) {
  if (!unit_stride_refusal(p, given).empty()) return {kThreadTiles, 0.15e6};
  if (given.splits_tf32) return {kAsyncTiles, 0.38e6};
  if (given.is_float32()) return {kTf32Tiles, 1.06e6};
  const bool is_aligned =
      has_aligned_lines(a_lines(p, given)) && has_aligned_lines(b_lines(p, given));
  return is_aligned ? LaterRung{kSwizzledTiles, 3.1e6} : LaterRung{kTensorCoreTiles, 1.06e6};
}
inline double later_us(const Params& p, const Given& given, const op::Gpu& gpu) {
  const LaterRung rung = later_rung(p, given);
  const TileShape& t = best_tile(p, given, gpu, rung.tiles);
  const int64_t rounds =
      div_ceil(num_tiles(p, given, t.block.m, t.block.n), int64_t(std::max(gpu.num_sms, 1)));
  const double outputs = double(rounds) * t.block.m * t.block.n / t.rate;
  return outputs * 2 * double(p.k) / rung.flop_per_us;
}

// A choice of what is packed if `why_not` is empty.
inline Choice packed_choice(std::string_view why_not, const Params& p, const Given& given,
                            const op::Gpu& gpu) {
  if (!why_not.empty()) return op::refuse(why_not);
  if (p.k == 0) return op::refuse("k is 0");
  if (const auto why = wgmma_architecture_refusal(gpu); !why.empty()) return op::refuse(why);
  const PackedOperand a = packed_a(p, given), b = packed_b(p, given);
  if (!a.is_needed && !b.is_needed) return op::refuse("the copy engine takes a and b as they are");
  const Params q = packed_params(p, given);
  for (const Lines& x : {a_lines(q, given), b_lines(q, given)})
    if (!has_engine_strides(x, given.batch) || x.next_line > int64_t(1) << 30)
      return op::refuse("a copy of a or b would be too large for the copy engine");
  if (std::max(pack_blocks(a), pack_blocks(b)) > op::kMaxBlocks)
    return op::refuse("needs 2^31 blocks or more");
  const RingTile& t = best_ring_tile(q, given, gpu);
  const double us = pack_us(a) + pack_us(b) + predicted_us(q, given, gpu, t);
  return choice(
      {}, persistent_start(q, given, gpu),
      us > later_us(p, given, gpu) ? "copies of a or b would take longer than they save" : "");
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

}  // namespace tensorcraft::kernel::gemm

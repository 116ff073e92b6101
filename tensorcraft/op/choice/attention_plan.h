// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/device/attention/params.h"

#include <algorithm>
#include <string_view>

// Tiles of the rungs on wgmma, and what the copy engine takes.
namespace tensorcraft::kernel::attention_tiles {

inline constexpr int kOpen = -1;  // in place of options: only key_lengths hide keys

// May a query not see all keys?
inline bool is_limited(const Params& p) {
  return p.causal_each || p.window.left < kUnlimited || p.window.right < kUnlimited;
}
// What of Params a call needs a kernel to look at.
inline int options_of(const Params& p) {
  if (p.mask.type != MaskType::none) return kMasks;
  if (p.softcap > 0) return kSoftcap;
  const bool has_window =
      p.window.left < kUnlimited || (p.window.right > 0 && p.window.right < kUnlimited);
  return p.sinks || p.q_starts || p.causal_each || has_window ? kRanges : 0;
}

// Rows of q, or of k, that a request has; of a ragged batch on average.
inline int rows_of_request(const Params& p, int rows) {
  return p.q_starts ? div_ceil(rows, std::max(p.requests, 1)) : rows;
}

// A multiprocessor of an H100 has 227 KiB for the queries, two or more tiles of keys and of values,
// and perhaps the output; scores, weights and output are in the registers of m / 64 consumers.
// Shorter rows are filled up with zeros by the copy engine. Pages take the tiles of 256 and of 192
// that have 64 keys alone, as all their tiles of one head_dim have equally many.
struct HopperTile {
  int head_dim;
  int options;  // the most that it serves
  int least_keys;
  int m, n;  // queries, keys
  int stages, takes_turns, out_tile;
  int value_dim = 0;  // the head_dim of v; 0: that of q
};
constexpr int values_of(const HopperTile& t) { return t.value_dim ? t.value_dim : t.head_dim; }

inline constexpr HopperTile kHopperTiles[] = {
    {32, kMasks, 0, 192, 128, 2, 1, 1},      {32, kMasks, 0, 128, 128, 2, 1, 1},
    {32, kMasks, 0, 64, 128, 2, 0, 1},       {64, kMasks, 0, 192, 128, 2, 1, 1},
    {64, kMasks, 0, 128, 128, 2, 1, 1},      {64, kMasks, 0, 64, 128, 2, 0, 1},
    {96, kMasks, 0, 128, 128, 2, 1, 0},      {96, kMasks, 0, 64, 128, 2, 0, 1},
    {128, kOpen, 4096, 128, 176, 2, 1, 0},   {128, kMasks, 0, 128, 128, 2, 1, 1},
    {128, kMasks, 0, 64, 128, 2, 0, 1},      {256, 0, 0, 128, 80, 2, 1, 0},
    {256, kRanges, 0, 128, 64, 2, 1, 0},     {256, kMasks, 0, 64, 80, 2, 0, 1},
    {256, kMasks, 0, 64, 64, 2, 0, 1},       {192, kMasks, 0, 128, 128, 2, 1, 0, 128},
    {192, kMasks, 0, 64, 128, 2, 0, 1, 128}, {192, kRanges, 0, 128, 112, 2, 1, 0},
    {192, kRanges, 0, 64, 112, 2, 0, 1},     {192, kRanges, 0, 128, 64, 2, 1, 0},
    {192, kMasks, 0, 64, 64, 2, 0, 1},
};

// The same of float8, whose output always leaves from memory of its own. With 128 keys scores,
// weights, the output and a part of it fill the registers (weighted_sums.cuh).
inline constexpr HopperTile kFloat8Tiles[] = {
    {64, kRanges, 0, 128, 128, 3, 1, 1},  {64, kRanges, 0, 64, 128, 3, 0, 1},
    {128, kRanges, 0, 128, 128, 3, 1, 1}, {128, kRanges, 0, 64, 128, 3, 0, 1},
    {256, kRanges, 0, 128, 64, 3, 1, 1},  {256, kRanges, 0, 64, 64, 3, 0, 1},
};

// The rows of queries that a tile has to compute, those behind the last one too, as rows of a tile
// of two consumers or three: one alone hides nothing under its products.
inline double rows_computed(const Params& p, const HopperTile& t) {
  constexpr double kRateOfOne = 0.6;
  const int queries = rows_of_request(p, p.seq_q);
  const bool ends_anywhere = p.q_starts && queries > t.m;
  const double rows = ends_anywhere ? queries + t.m / 2.0 : round_up(queries, t.m);
  return rows / (t.m == 64 ? kRateOfOne : 1);
}

// The shortest rows of tiles that cover those of a call, with the fewest keys.
template <class Tiles>
const HopperTile* shortest_tile(const Params& p, const Tiles& tiles) {
  const HopperTile* best = nullptr;
  const auto length = [](const HopperTile& t) { return t.head_dim + values_of(t); };
  for (const HopperTile& t : tiles) {
    if (t.head_dim < p.head_dim || values_of(t) < p.v_dim) continue;
    if (!best || length(t) < length(*best) || (length(t) == length(*best) && t.n < best->n))
      best = &t;
  }
  return best;
}

// The tile with the fewest rows of queries of those that serve a call, else the first; null: its
// rows are too long. `has_fewest_keys`: of one head_dim all tiles have equally many, so that a
// request's bits do not depend on which of them others choose. `most`: consumers.
template <class Tiles>
const HopperTile* best_tile(const Params& p, const Tiles& tiles, bool has_fewest_keys = false,
                            int most = 3) {
  const HopperTile *const shortest = shortest_tile(p, tiles), *best = nullptr;
  const int options = options_of(p), least = options > 0 || is_limited(p) ? options : kOpen;
  const int keys = rows_of_request(p, p.seq_k);
  for (const HopperTile& t : tiles) {
    if (!shortest || t.head_dim != shortest->head_dim || values_of(t) != values_of(*shortest))
      continue;
    if (t.options < least || keys < t.least_keys || t.m > most * kGroupRows) continue;
    if (has_fewest_keys && t.n != shortest->n) continue;
    if (!best || rows_computed(p, t) < rows_computed(p, *best)) best = &t;
  }
  return best;
}
inline const HopperTile* hopper_tile(const Params& p, int element_bytes) {
  return element_bytes == 1 ? best_tile(p, kFloat8Tiles) : best_tile(p, kHopperTiles);
}

// Does a query see so few keys that small tiles end first, of which a multiprocessor has many? As
// timed on an H100.
inline bool has_few_keys(const Params& p) {
  const int keys = std::min(rows_of_request(p, p.seq_k),
                            p.window.left < kUnlimited ? p.window.left + 1 : kUnlimited);
  const int seen = p.window.right == 0 ? keys / 2 : keys;
  return seen <= (p.head_dim <= 32 ? 1024 : p.head_dim <= 64 ? 128 : 64);
}

// `out` is own unless inputs are float8.
constexpr Config hopper_config(const HopperTile& t, int producers, bool persists,
                               OutputType out = OutputType::own) {
  const int consumers = t.m / 64;
  const bool has_out_tile = persists || out != OutputType::own;
  return {.head_dim = t.head_dim,
          .block_m = t.m,
          .block_n = t.n,
          .threads = (consumers + producers) * 128,
          .value_dim = t.value_dim,
          .stages = t.stages,
          .consumers = consumers,
          .takes_turns = producers ? t.takes_turns : 0,
          .out_tile = has_out_tile ? t.out_tile : 0,
          .out = int(out)};
}

// What float8 inputs take less than others; empty: nothing of this call.
inline std::string_view float8_refusal(const Params& p, OutputType out) {
  if (p.q_starts) return "takes no ragged batch of float8";
  if (options_of(p) > kRanges) return "takes neither softcap nor a mask with float8";
  if (out == OutputType::float32) return "writes float16 or bfloat16 of float8";
  return "";
}

inline constexpr std::string_view kHeadDims = "head_dim, also that of v, must be a multiple of 8";

// `code_bytes`: of k and v in memory.
inline std::string_view hopper_refusal(const Params& p, int element_bytes, int code_bytes,
                                       const op::Gpu& gpu) {
  if (gpu.architecture < 90) return "needs sm_90";
  if (gpu.architecture > 90) return "wgmma exists on sm_90 alone";
  if (element_bytes > 2) return "needs float16, bfloat16 or float8_e4m3fn";
  if (!(p.scale > 0)) return "scale must be positive";
  constexpr int64_t kStrideEnd = int64_t(1) << 40;
  const auto takes = [](const void* data, const Strides& s, int rows, int bytes) {
    const auto fits = [&](int64_t stride) {
      return stride >= 0 && stride < kStrideEnd / bytes && stride * bytes % 16 == 0;
    };
    return op::is_vector_aligned(data) && fits(s.batch) && fits(s.head) && fits(s.row) &&
           (rows <= 1 || s.row > 0);
  };
  if (!takes(p.q, p.q_strides, p.seq_q, element_bytes) ||
      !takes(p.k, p.k_strides, p.seq_k, code_bytes) ||
      !takes(p.v, p.v_strides, p.seq_k, code_bytes) || !takes(p.out, p.out_strides, p.seq_q, 2))
    return "rows of q, k, v and out must start at 16-byte boundaries, at strides of 0 to 2^40 "
           "bytes";
  if (p.head_dim % 8 != 0 || p.v_dim % 8 != 0) return kHeadDims;
  return "";
}

// The heads whose blocks of queries the persistent blocks take together: as many as have their keys
// and values in L2, under a causal limit, so that long works come first; else one after another.
inline int32_t hopper_section(const Params& p) {
  constexpr int64_t kBytesInL2 = int64_t(32) << 20;
  if (!is_limited(p)) return 1;
  const int64_t bytes = std::max<int64_t>(int64_t(p.seq_k) * (p.head_dim + p.v_dim) * 2, 1);
  const int64_t heads = std::max<int64_t>(kBytesInL2 / bytes, 1) * p.group;
  return int32_t(std::clamp<int64_t>(heads, 1, int64_t(p.batch) * p.heads));
}

}  // namespace tensorcraft::kernel::attention_tiles

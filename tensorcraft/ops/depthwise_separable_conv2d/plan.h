// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/image_plan.h"
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/ops/depthwise_separable_conv2d/params.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::depthwise_separable_conv2d {

using Choice = op::Choice<Config>;
using Start = op::Start<Config>;
struct Given {  // what choices look at besides Params
  int element_bytes;
  ConvActivation depthwise_activation, activation;
};

inline Choice naive(const Params& p, const Given&, const op::Gpu&) {
  const int64_t places = p.batch * p.rows.out * p.columns.out;
  return Start{
      {}, div_ceil(places, int64_t(kNaivePlaces)) * div_ceil(p.filters, int64_t(Config().threads))};
}

// A tile of fused, its warps' parts, and up to how many channels it serves.
struct Tile {
  int threads, m, n, k, warp_m, warp_n, min_blocks, most_channels;
};
// One for few channels, whose places fill a block's threads with pieces, one for steps that would
// be half empty, one that leaves room for several blocks, and one with weights read less often.
inline constexpr Tile kTiles[] = {{128, 128, 32, 32, 32, 32, 5, 32},
                                  {128, 64, 64, 32, 32, 32, 4, 96},
                                  {128, 64, 64, 64, 32, 32, 4, 256},
                                  {256, 64, 128, 64, 32, 32, 2, 1 << 16}};
inline constexpr int kStages = 3;

constexpr Config fused_config(const Tile& t, int taps, int stride, int vector,
                              ConvActivation depthwise_activation, ConvActivation activation) {
  return {.threads = t.threads,
          .depthwise_activation = depthwise_activation,
          .activation = activation,
          .vector = vector,
          .taps = taps,
          .stride = stride,
          .block_m = t.m,
          .block_n = t.n,
          .block_k = t.k,
          .warp_m = t.warp_m,
          .warp_n = t.warp_n,
          .stages = kStages};
}
inline int64_t fused_shared_bytes(const Config& c, int64_t channels) {
  return fused_fixed_bytes(c) + round_up(channels, int64_t(c.block_k)) * c.block_m * 2;
}

// How the rows of an image are cut into bands: whole if there are few, else of 4 to 8 rows, of
// which as few as can be are left empty.
inline int64_t rows_of_band(int64_t rows) {
  constexpr int64_t kMost = 8, kLeast = 4;
  if (rows <= kMost) return std::max<int64_t>(rows, 1);
  int64_t best = kMost;
  for (int64_t n = kMost - 1; n >= kLeast; --n)
    if (round_up(rows, n) < round_up(rows, best)) best = n;
  return best;
}
// Pieces of the rows of all images, those in the empty rows of bands included.
struct Pieces {
  int64_t rows, across, bands;
  int64_t all(int64_t batch) const { return batch * bands * across * rows; }
};
inline Pieces pieces_of(const Params& p) {
  const int64_t rows = rows_of_band(p.rows.out);
  return {rows, div_ceil(p.columns.out, int64_t(kPiece)), div_ceil(p.rows.out, rows)};
}

// The blocks of a tile: of places, and over how many of them the filters of a place are spread, so
// that no multiprocessor is idle.
struct Blocks {
  int64_t places, parts;
};
inline Blocks blocks_of(const Params& p, const Config& c, const op::Gpu& gpu) {
  const int64_t places = div_ceil(pieces_of(p).all(p.batch), int64_t(c.block_m / kPiece));
  const int64_t most = std::max<int64_t>(1, div_ceil(p.filters, int64_t(c.block_n)));
  return {places, places == 0 ? 1 : std::clamp<int64_t>(gpu.num_sms / places, 1, most)};
}

// Do accesses of 16 bytes fit the product's weights?
inline bool has_dense_filters(const Params& p) {
  return p.pointwise_at.channel == 1 && p.pointwise_at.filter % kFusedVector == 0 &&
         op::is_vector_aligned(p.pointwise);
}
// Can one access take four filters of the result, and of the residual?
inline bool has_result_vectors(const Params& p, int element_bytes) {
  return p.filters % 4 == 0 && op::has_channel_vectors(p.out, p.out_at, 4, element_bytes) &&
         op::has_channel_vectors(p.residual, p.residual_at, 4, element_bytes);
}
// Do 31 bits count the pieces, and the elements of an image with the taps beyond it?
inline bool is_small(const Params& p) {
  constexpr int64_t kMost = int64_t(1) << 30;
  const auto fits = [](const WindowAxis& a, int64_t stride) {
    const double last = double(a.stride) * double(a.out) + double(a.taps) * double(a.dilation);
    return (last + double(a.before)) * std::max(1.0, std::abs(double(stride))) < double(kMost);
  };
  const Pieces pieces = pieces_of(p);
  return fits(p.rows, p.x_at.row) && fits(p.columns, p.x_at.column) && p.channels < kMost &&
         double(p.batch) * double(pieces.bands * pieces.across * pieces.rows) < double(kMost);
}

inline std::string_view fused_refusal(const Params& p, const Given& given) {
  if (given.element_bytes != 2) return "needs float16 or bfloat16";
  if (p.rows.taps * p.columns.taps > kFusedMaxTaps) return "needs a window of at most 25 taps";
  if (p.channels == 0 || p.channels % kFusedVector != 0) return "needs a multiple of 8 channels";
  if (!op::has_channel_vectors(p.x, p.x_at, kFusedVector, given.element_bytes))
    return "needs channels of x side by side, at multiples of 16 bytes";
  if (!has_dense_filters(p))
    return "needs channels of pointwise side by side, at multiples of 16 bytes";
  if (!is_small(p)) return "needs fewer than 2^30 pieces of rows, and elements of an image";
  return {};
}

// The first tile for so many channels; null if shared memory has no room for all of them.
inline const Tile* tile_for(const Params& p, const Config& window, const op::Gpu& gpu) {
  for (const Tile& t : kTiles) {
    const Config c = fused_config(t, window.taps, window.stride, 1, {}, {});
    const bool is_half_empty =
        round_up(p.channels, int64_t(64)) != round_up(p.channels, int64_t(32));
    if (p.channels > t.most_channels || (t.k == 32 && !is_half_empty)) continue;
    if (gpu.shared_bytes_per_block &&
        fused_shared_bytes(c, p.channels) > gpu.shared_bytes_per_block)
      continue;
    return &t;
  }
  return nullptr;
}
// The facts of the window that fused compiles in.
inline Config window_of(const Params& p) {
  const WindowAxis &rows = p.rows, &columns = p.columns;
  const bool is_square = rows.taps == columns.taps && rows.dilation == 1 && columns.dilation == 1;
  const bool is_known =
      is_square && (columns.taps == 3 || columns.taps == 5) && columns.stride <= 2;
  return {.taps = is_known ? int(columns.taps) : 0, .stride = is_known ? int(columns.stride) : 0};
}

inline Choice fused(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = fused_refusal(p, given); !why.empty()) return op::refuse(why);
  const Config window = window_of(p);
  const Tile* const t = tile_for(p, window, gpu);
  if (!t)
    return op::refuse("needs more shared memory for all channels of 64 places than a block has");
  const int vector = has_result_vectors(p, given.element_bytes) ? 4 : 1;
  const Config c = fused_config(*t, window.taps, window.stride, vector, given.depthwise_activation,
                                given.activation);
  const Blocks blocks = blocks_of(p, c, gpu);
  return Start{.config = c,
               .blocks = p.filters == 0 ? 0 : blocks.places * blocks.parts,
               .min_blocks = t->min_blocks,
               .shared_bytes = int(fused_shared_bytes(c, p.channels))};
}
// How its blocks find their pieces and filters.
inline void count_pieces(Params& p, const Given&, const op::Gpu& gpu) {
  const Config window = window_of(p);
  const Config c = fused_config(*tile_for(p, window, gpu), window.taps, window.stride, 1, {}, {});
  const Pieces pieces = pieces_of(p);
  p.pieces = uint32_t(pieces.all(p.batch));
  p.parts = uint32_t(blocks_of(p, c, gpu).parts);
  p.by_parts = Divider::of(p.parts);
  p.by_rows = Divider::of(pieces.rows);
  p.by_pieces = Divider::of(std::max<int64_t>(pieces.across, 1));
  p.by_bands = Divider::of(std::max<int64_t>(pieces.bands, 1));
}

using Rung = op::Rung<Params, Given, Config>;
inline constexpr Rung kRungs[] = {
    {.name = "fused",
     .file = "01_fused.cuh",
     .idea =
         "all channels of some places filtered into shared memory, multiplied there by mma.sync",
     .choose = fused,
     .spills = "5x5 windows keep a row of inputs beside the sums, in 128 registers a thread",
     .adapt = count_pieces},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "channels of a few places filtered step by step, a thread a filter; any strides",
     .choose = naive},
};

}  // namespace tensorcraft::kernel::depthwise_separable_conv2d

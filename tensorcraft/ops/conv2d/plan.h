// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/conv2d/depthwise_plan.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::conv2d {

inline Choice naive(const Params& p, const Given& given, const op::Gpu&) {
  return Start{{.activation = given.activation},
               div_ceil<int64_t>(num_places(p) * p.groups * p.filters, Config().threads)};
}

constexpr Config tiled_config(bool along_k, ConvActivation activation) {
  return {
      .activation = activation, .along_k = along_k, .block_m = 64, .block_n = 64, .block_k = 16};
}
inline Choice tiled(const Params& p, const Given& given, const op::Gpu&) {
  if (p.channels == 0) return op::refuse("needs at least one channel");
  const Config c = tiled_config(p.x_at.channel == 1, given.activation);
  const int64_t blocks = div_ceil(num_places(p), int64_t(c.block_m)) *
                         div_ceil(p.filters, int64_t(c.block_n)) * p.groups;
  return {Start{c, blocks}, p.filters < 4 ? "naive leaves no tile empty with so few filters" : ""};
}

// A tile of implicit_gemm and its warps' parts.
struct Tile {
  int m, n, warp_m, warp_n, stages, min_blocks;
};
inline constexpr int kStepBytes = 128;  // of a row of the product in one step along k
inline constexpr Tile kTiles[] = {
    {128, 128, 64, 64, 3, 2}, {128, 64, 64, 32, 4, 2}, {64, 64, 32, 32, 4, 3}};
// Tiles of float32: rounding takes registers, which a warp's 64 x 64 sums leave too few of.
inline constexpr Tile kTf32Tiles[] = {
    {128, 128, 64, 32, 3, 1}, {128, 64, 64, 32, 4, 2}, {64, 64, 32, 32, 4, 3}};
constexpr Config gemm_config(const Tile& t, int vector, ConvActivation activation,
                             int element_bytes = 2) {
  return {.threads = 32 * (t.m / t.warp_m) * (t.n / t.warp_n),
          .activation = activation,
          .vector = vector,
          .block_m = t.m,
          .block_n = t.n,
          .block_k = kStepBytes / element_bytes,
          .warp_m = t.warp_m,
          .warp_n = t.warp_n,
          .stages = t.stages};
}
// Stages, or the slabs that sums leave through.
constexpr int gemm_shared_bytes(const Config& c) {
  const int stages = c.stages * kStepBytes * (c.block_m + c.block_n);
  const int slabs = c.threads / 32 * 16 * (c.warp_n + 8) * 4;
  return std::max(stages, slabs);
}

inline int64_t num_tiles(const Params& p, const Tile& t) {
  return div_ceil(num_places(p), int64_t(t.m)) * div_ceil(p.filters, int64_t(t.n)) * p.groups;
}
// The largest tile that is not mostly empty and leaves no multiprocessor without one.
inline const Tile& best_tile(const Params& p, const op::Gpu& gpu, const Tile (&tiles)[3]) {
  for (const Tile& t : tiles)
    if (t.n <= round_up(p.filters, int64_t(64)) && num_tiles(p, t) >= gpu.num_sms) return t;
  return tiles[std::size(tiles) - 1];
}

// Do the taps and channels of a filter follow one another, in whole vectors?
inline bool has_dense_filters(const Params& p, int element_bytes) {
  return p.w_at.channel == 1 && p.w_at.column == p.channels &&
         p.w_at.row == p.columns.taps * p.channels && p.w_at.filter % (16 / element_bytes) == 0 &&
         op::is_vector_aligned(p.w);
}
inline constexpr std::string_view kNeedsDenseFilters =
    "needs the taps and channels of a filter without gaps, channels last";

// Why tensor cores cannot take the elements, or empty; `tf32`: the rung rounds float32.
inline std::string_view element_refusal(const Given& given, bool tf32) {
  if (!tf32) return given.element_bytes == 2 ? "" : "needs float16 or bfloat16";
  if (given.element_bytes != 4) return "needs float32";
  return given.allow_tf32 ? ""
                          : "float32 would be rounded to tf32, which allow_tf32 is not set for";
}

// Places and sizes that fit what a thread keeps of a row of the product.
inline bool fits_copier(const Params& p) {
  constexpr int64_t side = int64_t(1) << 14, all = int64_t(1) << 31;
  const auto fits = [&](const WindowAxis& a) {
    return a.in < side && a.before < side && a.first(a.out - 1) < side &&
           (a.taps - 1) * a.dilation < side;
  };
  const auto reach = [&](const WindowAxis& a, int64_t stride) {
    const int64_t last = a.first(a.out - 1) + (a.taps - 1) * a.dilation;
    return std::abs(stride) * (a.in + a.before + std::max<int64_t>(last, 0));
  };
  if (!fits(p.rows) || !fits(p.columns) || num_places(p) >= all) return false;
  return std::abs(p.x_at.sample) * p.batch + reach(p.rows, p.x_at.row) +
             reach(p.columns, p.x_at.column) + p.channels <
         all;
}

inline std::string_view gemm_refusal(const Params& p, const Given& given, bool tf32) {
  if (const auto why = element_refusal(given, tf32); !why.empty()) return why;
  if (p.channels == 0 || p.channels * given.element_bytes % 16 != 0)
    return tf32 ? "needs a multiple of 4 channels in a group"
                : "needs a multiple of 8 channels in a group";
  if (!has_input_vectors(p, given.element_bytes))
    return "needs channels of x side by side, at multiples of 16 bytes";
  if (!has_dense_filters(p, given.element_bytes)) return kNeedsDenseFilters;
  if (!fits_copier(p))
    return "needs images of fewer than 2^14 rows and columns, and x of fewer than 2^31 elements";
  return {};
}
template <bool tf32>
Choice implicit_gemm(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = gemm_refusal(p, given, tf32); !why.empty()) return op::refuse(why);
  const bool whole = p.filters % 4 == 0 && has_result_vectors(p, 4, given.element_bytes);
  const Tile& t = best_tile(p, gpu, tf32 ? kTf32Tiles : kTiles);
  const Config c = gemm_config(t, whole ? 4 : 1, given.activation, given.element_bytes);
  const int shared = gemm_shared_bytes(c);
  return Start{
      .config = c, .blocks = num_tiles(p, t), .min_blocks = t.min_blocks, .shared_bytes = shared};
}

// A tile of implicit_wgmma, and what it costs in microseconds on an H100: a step along k if few
// multiprocessors multiply, how much longer if all do, a tile besides its steps, and a launch.
struct WgmmaTile {
  int m, n, stages;
  double step, crowd, tile, start;
};
// The tiles of gemm, where it has such a tile: its steps are the same but for the windows. A tile
// of 192 x 128 has as many products as one of 128 x 192.
inline constexpr WgmmaTile kWgmmaTiles[] = {
    {128, 256, 4, 0.585, 0.121, 1.52, 1.98}, {128, 192, 4, 0.440, 0.106, 1.29, 2.93},
    {192, 128, 4, 0.440, 0.106, 1.29, 2.93}, {128, 160, 5, 0.392, 0.074, 0.97, 2.05},
    {128, 128, 6, 0.319, 0.064, 0.97, 1.99}, {128, 64, 8, 0.200, 0.090, 0.60, 1.80},
    {64, 128, 8, 0.167, 0.118, 0.42, 1.63},  {64, 64, 10, 0.130, 0.170, 0.25, 1.38}};

constexpr Config wgmma_config(const WgmmaTile& t, ConvActivation activation,
                              int element_bytes = 2) {
  const int consumers = t.m / kGroupRows;
  return {.threads = (consumers + 1) * kWarpgroup,
          .activation = activation,
          .block_m = t.m,
          .block_n = t.n,
          .block_k = kStepBytes / element_bytes,
          .stages = t.stages,
          .consumers = consumers};
}

// How the blocks of a GPU go over the tiles.
struct Walk {
  int64_t tiles, blocks;
  int64_t rounds() const { return div_ceil(tiles, blocks); }
  double busy(const op::Gpu& gpu) const {
    return std::min(1.0, double(tiles) / double(rounds() * std::max(gpu.num_sms, 1)));
  }
};
inline Walk walk_of(const Params& p, const op::Gpu& gpu, const WgmmaTile& t) {
  const int64_t tiles = div_ceil(num_places(p), int64_t(t.m)) * div_ceil(p.filters, int64_t(t.n));
  return {tiles, std::clamp<int64_t>(tiles, 1, std::max(gpu.num_sms, 1))};
}
// The multiprocessor with most tiles ends last, and memory sets the least. 128 bytes of both
// operands take as long to multiply in tf32 as in 16 bits.
inline double predicted_us(const Params& p, const op::Gpu& gpu, const WgmmaTile& t,
                           int element_bytes) {
  constexpr double kBytesInOne = 3.0e6;
  const int64_t taps = p.rows.taps * p.columns.taps;
  const Walk walk = walk_of(p, gpu, t);
  const double steps = double(taps * div_ceil(p.channels, int64_t(kStepBytes / element_bytes)));
  const double tile = steps * (t.step + t.crowd * walk.busy(gpu)) + t.tile;
  const double elements = double(p.batch * p.rows.in * p.columns.in * p.channels) +
                          double(taps * p.channels * p.filters) +
                          double(num_places(p) * p.filters * (p.residual ? 2 : 1));
  return std::max(double(walk.rounds()) * tile, element_bytes * elements / kBytesInOne) + t.start;
}

// Do the windows of an axis fit a map of im2col mode? Its corners have 8 bits, and so has a tap.
inline bool fits_map(const WindowAxis& a) {
  const int64_t reach = (a.taps - 1) * a.dilation, behind = a.first(a.out - 1) - (a.in - 1);
  return a.in > 0 && a.in < (int64_t(1) << 31) && (a.stride <= 8 || a.out == 1) &&
         a.before <= 128 && behind >= -128 && behind < 128 && reach < 256;
}
// Is the result a matrix whose rows are places, which the copy engine can store?
inline bool is_matrix_of_places(const Params& p, int element_bytes) {
  const ImageStrides& at = p.out_at;
  const bool rows = p.rows.out == 1 || at.row == p.columns.out * at.column;
  const bool samples = p.batch <= 1 || at.sample == p.rows.out * p.columns.out * at.column;
  return at.channel == 1 && at.column > 0 && at.column % (16 / element_bytes) == 0 && rows &&
         samples && op::is_vector_aligned(p.out);
}
inline bool has_residual_pairs(const Params& p, int element_bytes) {
  return op::has_channel_vectors(p.residual, p.residual_at, 2, element_bytes);
}
// The copy engine takes strides up to 2^40 bytes, forwards.
inline bool has_engine_strides(const Params& p, int element_bytes) {
  const auto takes = [&](int64_t size, int64_t stride) {
    return size <= 1 || (stride > 0 && stride < (int64_t(1) << 40) / element_bytes);
  };
  return takes(p.columns.in, p.x_at.column) && takes(p.rows.in, p.x_at.row) &&
         takes(p.batch, p.x_at.sample) && takes(p.filters, p.w_at.filter) &&
         takes(num_places(p), p.out_at.column);
}

inline std::string_view wgmma_refusal(const Params& p, const Given& given, const op::Gpu& gpu,
                                      bool tf32) {
  const int bytes = given.element_bytes;
  if (gpu.architecture < 90) return "needs sm_90";
  if (gpu.architecture > 90) return "wgmma exists on sm_90 alone";
  if (const auto why = element_refusal(given, tf32); !why.empty()) return why;
  if (p.groups != 1) return "needs one group";
  const auto is_whole = [&](int64_t n) { return n > 0 && n * bytes % 16 == 0; };
  if (!is_whole(p.channels) || !is_whole(p.filters))
    return tf32 ? "needs multiples of 4 channels and filters"
                : "needs multiples of 8 channels and filters";
  if (!has_input_vectors(p, bytes) || !has_engine_strides(p, bytes))
    return "needs channels of x side by side, at multiples of 16 bytes, and strides forwards";
  if (!has_dense_filters(p, bytes)) return kNeedsDenseFilters;
  if (!fits_map(p.rows) || !fits_map(p.columns))
    return "needs strides up to 8, and padding and windows of fewer than 128 places";
  constexpr int64_t kMost = (int64_t(1) << 31) - 256;  // the last tile ends within 32 bits
  if (num_places(p) > kMost || p.channels > kMost || p.filters > kMost)
    return "needs fewer than 2^31 - 256 places, channels and filters";
  if (!is_matrix_of_places(p, bytes) || !has_residual_pairs(p, bytes))
    return "needs a result without gaps between rows, and channels of it and of residual side by "
           "side";
  return {};
}

struct WeighedTile {
  WgmmaTile tile{};
  double us = 0;
};
// The tile with the least predicted time that shared memory has room for; of no size: there is
// none.
inline WeighedTile best_wgmma_tile(const Params& p, const op::Gpu& gpu, int element_bytes) {
  WeighedTile best;
  for (const WgmmaTile& t : kWgmmaTiles) {
    const int shared =
        wgmma_shared_bytes(wgmma_config(t, ConvActivation::none, element_bytes), element_bytes);
    if (gpu.shared_bytes_per_block && shared > gpu.shared_bytes_per_block) continue;
    const double us = predicted_us(p, gpu, t, element_bytes);
    if (best.tile.m == 0 || us < best.us) best = {t, us};
  }
  return best;
}
template <bool tf32>
void weigh_implicit_wgmma(op::Candidates<Config>& all, const Params& p, const Given& given,
                          const op::Gpu& gpu) {
  if (!wgmma_refusal(p, given, gpu, tf32).empty()) return;
  for (const WgmmaTile& t : kWgmmaTiles) {
    const Walk walk = walk_of(p, gpu, t);
    all.add({wgmma_config(t, given.activation, given.element_bytes),
             predicted_us(p, gpu, t, given.element_bytes), walk.rounds(), walk.busy(gpu)});
  }
}
template <bool tf32>
Choice implicit_wgmma(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = wgmma_refusal(p, given, gpu, tf32); !why.empty()) return op::refuse(why);
  const WeighedTile best = best_wgmma_tile(p, gpu, given.element_bytes);
  if (best.tile.m == 0) return op::refuse("needs more shared memory than a block has");
  const Config c = wgmma_config(best.tile, given.activation, given.element_bytes);
  const Walk walk = walk_of(p, gpu, best.tile);
  return Start{.config = c,
               .blocks = walk.tiles == 0 ? 0 : walk.blocks,
               .shared_bytes = wgmma_shared_bytes(c, given.element_bytes)};
}

constexpr Config winograd_config(bool along_k, int taps, ConvActivation activation) {
  return {.threads = winograd_elements(taps) * winograd_filters(taps) / 2,
          .activation = activation,
          .taps = taps,
          .along_k = along_k};
}
inline Choice winograd(const Params& p, const Given& given, const op::Gpu&) {
  const auto fits = [&](const WindowAxis& a) {
    return a.taps == p.rows.taps && a.stride == 1 && a.dilation == 1;
  };
  const int taps = int(p.rows.taps);
  if ((taps != 3 && taps != 5) || !fits(p.rows) || !fits(p.columns))
    return op::refuse("needs a window of 3 x 3 or 5 x 5, stride 1 and no dilation");
  const int64_t tiles =
      p.batch * div_ceil(p.rows.out, int64_t(2)) * div_ceil(p.columns.out, int64_t(2));
  const int64_t blocks = div_ceil(tiles, int64_t(kWinogradTiles)) *
                         div_ceil(p.filters, int64_t(winograd_filters(taps))) * p.groups;
  return {Start{.config = winograd_config(p.x_at.channel == 1, taps, given.activation),
                .blocks = blocks,
                .shared_bytes = winograd_shared_bytes(taps)},
          "tiled keeps an infinity from the outputs beside it; name winograd for finite inputs"};
}

// The tiles of direct and direct_wgmma.
inline int64_t num_direct_tiles(const Params& p) {
  return p.batch * div_ceil(p.rows.out, int64_t(kDirectRows)) *
         div_ceil(p.columns.out, int64_t(kDirectColumns));
}
// Blocks that go on to further tiles, `blocks_of_sm` of them on a multiprocessor.
inline int64_t num_direct_blocks(const Params& p, const op::Gpu& gpu, int blocks_of_sm) {
  const int64_t parts = div_ceil(p.filters, int64_t(kDirectFilters));
  const int64_t most = std::max<int64_t>(1, int64_t(gpu.num_sms) * blocks_of_sm / parts);
  return parts * std::clamp<int64_t>(num_direct_tiles(p), 1, most);
}
// Why images, windows or counts suit neither of them, or empty.
inline std::string_view direct_refusal(const Params& p, const Given& given) {
  if (given.element_bytes != 2) return "needs float16 or bfloat16";
  if (p.groups != 1 || p.channels < 1 || p.channels > 4)
    return "needs 1 to 4 channels in one group";
  if (p.rows.dilation != 1 || p.columns.dilation != 1) return "needs taps side by side";
  const auto reach = [](const WindowAxis& a, int outputs) {
    return (outputs - 1) * a.stride + a.taps;
  };
  if (p.rows.taps * p.columns.taps > kDirectMaxTaps ||
      reach(p.rows, kDirectRows) * reach(p.columns, kDirectColumns) > kDirectMaxPixels)
    return "needs a window of at most 52 taps, and strides of 1 or 2";
  const int64_t image = std::abs(p.x_at.row) * p.rows.in + std::abs(p.x_at.column) * p.columns.in +
                        std::abs(p.x_at.channel) * p.channels;
  constexpr int64_t kMost = int64_t(1) << 30;
  if (image >= kMost || num_direct_tiles(p) >= kMost || p.rows.out * p.columns.out >= kMost ||
      p.filters >= kMost || std::max(p.rows.before, p.columns.before) >= kMost)
    return "needs fewer than 2^30 tiles, filters, and elements of an image";
  return {};
}
// Do the sums of a place leave in units of 8 filters, without a residual?
inline bool has_rounded_results(const Params& p, const Given& given) {
  return p.filters % 8 == 0 && !p.residual && has_result_vectors(p, 8, given.element_bytes);
}

constexpr Config direct_config(int vector, ConvActivation activation) {
  return {.threads = 32 * kDirectWarps, .activation = activation, .vector = vector};
}
inline Choice direct(const Params& p, const Given& given, const op::Gpu& gpu) {
  constexpr int kBlocksThatFit = 3;  // in the registers of a multiprocessor
  if (const auto why = direct_refusal(p, given); !why.empty()) return op::refuse(why);
  const Config c = direct_config(has_rounded_results(p, given) ? 8 : 1, given.activation);
  return Start{.config = c,
               .blocks = num_direct_blocks(p, gpu, kBlocksThatFit),
               .min_blocks = kBlocksThatFit,
               .shared_bytes = direct_shared_bytes(c)};
}

constexpr Config direct_wgmma_config(int taps, ConvActivation activation) {
  return {.threads = kWarpgroup, .activation = activation, .taps = taps};
}
inline Choice direct_wgmma(const Params& p, const Given& given, const op::Gpu& gpu) {
  constexpr int kBlocksThatFit = 4;  // in the registers of a multiprocessor
  if (gpu.architecture < 90) return op::refuse("needs sm_90");
  if (gpu.architecture > 90) return op::refuse("wgmma exists on sm_90 alone");
  if (const auto why = direct_refusal(p, given); !why.empty()) return op::refuse(why);
  const int64_t taps = p.rows.taps;
  if (p.columns.taps != taps || (taps != 3 && taps != 7) || p.rows.stride != 2 ||
      p.columns.stride != 2 || p.columns.before > kStemMargin)
    return op::refuse("needs a window of 3 x 3 or 7 x 7, strides of 2, and padding up to 8");
  if (p.rows.in == 0 || p.columns.in == 0) return op::refuse("needs images that are not empty");
  if (p.channels != 3 || p.x_at.channel != 1 || p.x_at.column != 3 || p.columns.in % 2 != 0 ||
      p.x_at.row % 2 != 0 || p.x_at.sample % 2 != 0 || !op::is_aligned(p.x, 4))
    return op::refuse("needs lines of 3 channels without gaps, 2 pixels at multiples of 4 bytes");
  if (std::abs(p.w_at.filter) * p.filters +
          (std::abs(p.w_at.row) + std::abs(p.w_at.column)) * taps + std::abs(p.w_at.channel) * 3 >=
      (int64_t(1) << 30))
    return op::refuse("needs filters of fewer than 2^30 elements");
  if (!has_rounded_results(p, given))
    return op::refuse("needs results in units of 8 filters, and no residual");
  const Config c = direct_wgmma_config(int(taps), given.activation);
  return Start{.config = c,
               .blocks = num_direct_blocks(p, gpu, kBlocksThatFit),
               .min_blocks = kBlocksThatFit,
               .shared_bytes = direct_wgmma_shared_bytes(c)};
}

using Rung = op::Rung<Params, Given, Config>;
inline constexpr Rung kNaiveRung{.name = "naive",
                                 .file = "00_naive.cuh",
                                 .idea = "one thread an element; any strides",
                                 .choose = naive};
inline constexpr Rung kDepthwiseRung{
    .name = "depthwise",
    .file = "02_depthwise.cuh",
    .idea = "16 bytes of channels a thread; an input of a row is read once for several outputs",
    .choose = depthwise};
inline constexpr Rung kSlidingRung{
    .name = "sliding",
    .file = "08_sliding.cuh",
    .idea = "strips of outputs go down the image: sums and weights in registers, a row read once",
    .choose = sliding,
    .adapt = cut_strips};
inline constexpr Rung kRungs[] = {
    kSlidingRung,
    kDepthwiseRung,
    {.name = "implicit_wgmma",
     .file = "07_implicit_wgmma.cuh",
     .idea = "implicit_gemm, windows gathered by the copy engine, multiplied by wgmma",
     .choose = implicit_wgmma<false>,
     .weigh = weigh_implicit_wgmma<false>},
    {.name = "implicit_wgmma_tf32",
     .file = "07_implicit_wgmma.cuh",
     .idea = "implicit_wgmma, float32 rounded to tf32 by the copy engine",
     .choose = implicit_wgmma<true>,
     .kernel = "implicit_wgmma",
     .weigh = weigh_implicit_wgmma<true>},
    {.name = "implicit_gemm",
     .file = "03_implicit_gemm.cuh",
     .idea = "a product on tensor cores whose rows cp.async takes from the images themselves",
     .choose = implicit_gemm<false>,
     .spills = "four warps with 128 x 128 sums keep a few addresses of windows in memory"},
    {.name = "implicit_gemm_tf32",
     .file = "03_implicit_gemm.cuh",
     .idea = "implicit_gemm, float32 rounded to tf32",
     .choose = implicit_gemm<true>,
     .kernel = "implicit_gemm"},
    {.name = "direct_wgmma",
     .file = "09_direct_wgmma.cuh",
     .idea = "direct for 3 channels and strides of 2, filters by outputs; wgmma reads windows in "
             "pixels",
     .choose = direct_wgmma},
    {.name = "direct",
     .file = "05_direct.cuh",
     .idea = "stems of up to 4 channels on tensor cores, straight from pixels in shared memory",
     .choose = direct},
    {.name = "winograd",
     .file = "06_winograd.cuh",
     .idea = "4 outputs of a window by 16 products for 36 (3 x 3) or 36 for 100, in another basis",
     .choose = winograd,
     .spills =
         "a thread of a 5 x 5 window keeps some of its 64 sums while it transforms 36 inputs"},
    {.name = "tiled",
     .file = "01_tiled.cuh",
     .idea = "a product of tiles in shared memory, 16 sums a thread; any strides and dtype",
     .choose = tiled},
    kNaiveRung,
};
// The ladder of depthwise_conv2d.
inline constexpr Rung kDepthwiseRungs[] = {kSlidingRung, kDepthwiseRung, kNaiveRung};

using Im2colChoice = op::Choice<Im2colConfig>;
inline Im2colChoice im2col(const Im2colParams& p, const op::NoGiven&, const op::Gpu&) {
  const int64_t all =
      p.batch * p.rows.out * p.columns.out * p.channels * p.rows.taps * p.columns.taps;
  return op::Start<Im2colConfig>{{}, div_ceil<int64_t>(all, Im2colConfig().threads)};
}
inline constexpr op::Rung<Im2colParams, op::NoGiven, Im2colConfig> kIm2colRungs[] = {
    {.name = "im2col",
     .file = "04_im2col.cuh",
     .idea = "one thread an element of the matrix, written line by line",
     .choose = im2col},
};

}  // namespace tensorcraft::kernel::conv2d

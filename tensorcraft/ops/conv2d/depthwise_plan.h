// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/conv2d/facts_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

// How the rungs that have a channel by itself are chosen and started; host only.
namespace tensorcraft::kernel::conv2d {

inline constexpr int kOutputs = 4;     // of a thread of depthwise
inline constexpr int kBlocksOfSm = 8;  // of depthwise, which share the places

inline constexpr std::string_view kNeedsOneChannel = "needs one channel and one filter a group";

inline Config depthwise_config(const Params& p, const Given& given) {
  Config c{.activation = given.activation, .vector = 16 / given.element_bytes, .outputs = kOutputs};
  const bool square = p.rows.taps == p.columns.taps && p.columns.dilation == 1;
  const bool known = (p.columns.taps == 3 || p.columns.taps == 5) && p.columns.stride <= 2;
  if (square && known) {
    c.taps = int(p.columns.taps);
    c.stride = int(p.columns.stride);
  }
  return c;
}

inline Choice depthwise(const Params& p, const Given& given, const op::Gpu& gpu) {
  const int vector = 16 / given.element_bytes;
  if (!is_depthwise(p)) return op::refuse(kNeedsOneChannel);
  if (p.rows.taps * p.columns.taps > kDepthwiseMaxTaps)
    return op::refuse("needs a window of at most 49 taps");
  if (p.groups % vector != 0) return op::refuse("needs channels of whole units of 16 bytes");
  if (!has_input_vectors(p, given.element_bytes) ||
      !has_result_vectors(p, vector, given.element_bytes))
    return op::refuse("needs channels side by side, at multiples of 16 bytes");
  const Config c = depthwise_config(p, given);
  const int64_t parts = div_ceil(p.groups, int64_t(kDepthwiseLanes * vector));
  const int64_t pieces = p.batch * p.rows.out * div_ceil(p.columns.out, int64_t(c.outputs));
  const int64_t most = std::max<int64_t>(1, int64_t(gpu.num_sms) * kBlocksOfSm / parts);
  return Start{c, parts * std::clamp<int64_t>(
                              div_ceil(pieces, int64_t(c.threads / kDepthwiseLanes)), 1, most)};
}

// The work of a thread of sliding: outputs side by side, and rows of x on their way.
constexpr Config sliding_config(int taps, int stride, ConvActivation activation) {
  return {.threads = 128,
          .activation = activation,
          .vector = 2,
          .taps = taps,
          .stride = stride,
          .outputs = taps == 5 && stride == 2 ? 2 : 4,
          .stages = taps == 5 && stride == 1 ? 3 : 4};
}
// Blocks of a multiprocessor, by their registers.
constexpr int sliding_blocks(const Config& c, const Given& given) {
  return given.element_bytes == 4 ? 3 : c.taps == 3 ? 5 : 4;
}

// The strips of sliding: beside one another, below one another, their rows, and the blocks that
// have them.
struct Strips {
  int64_t pieces, segments, rows, blocks;
};
// Many strips fill the multiprocessors, few read fewer rows twice. A round of blocks takes as long
// as its rows of x, and as kRowsOfStart more until the first have come. A map of up to kUncutRows
// is not cut: its strips would read more rows twice than they have.
inline Strips strips_of(const Params& p, const Given& given, const op::Gpu& gpu) {
  constexpr int64_t kRowsOfStart = 8, kUncutRows = 8;
  const Config c = sliding_config(int(p.rows.taps), int(p.rows.stride), given.activation);
  const int64_t channels = kSlidingBytes / given.element_bytes,
                parts = div_ceil(p.groups, channels);
  const int64_t of_block = c.threads * c.vector / channels;
  const int64_t pieces = div_ceil(p.columns.out, int64_t(c.outputs));
  const int64_t room = std::max<int64_t>(1, int64_t(gpu.num_sms) * sliding_blocks(c, given));
  Strips best{};
  int64_t least = 0;
  const int64_t most = p.rows.out <= kUncutRows ? 1 : p.rows.out;
  for (int64_t cut = 1; cut <= most; cut += 1 + cut / 8) {
    const int64_t rows = div_ceil(p.rows.out, cut), segments = div_ceil(p.rows.out, rows);
    const int64_t blocks = parts * div_ceil(p.batch * pieces * segments, of_block);
    const int64_t seen = (rows - 1) * p.rows.stride + p.rows.taps;
    const int64_t cost = div_ceil(blocks, room) * (seen + kRowsOfStart);
    if (best.rows != 0 && cost >= least) continue;
    best = {pieces, segments, rows, blocks};
    least = cost;
  }
  return best;
}

// Do 31 bits count the elements of an image, gaps and padding included? Those of the filters?
inline double elements_along(int64_t size, int64_t stride) {
  return double(size + 2 * kDepthwiseMaxTaps) * std::max(1.0, std::abs(double(stride)));
}
inline bool is_small(const ImageStrides& at, int64_t rows, int64_t columns) {
  return elements_along(rows, at.row) + elements_along(columns, at.column) < double(1 << 30);
}
inline bool is_small(const FilterStrides& at, int64_t filters) {
  return elements_along(filters, at.filter) + elements_along(0, at.row) +
             elements_along(0, at.column) <
         double(1 << 30);
}

inline Choice sliding(const Params& p, const Given& given, const op::Gpu& gpu) {
  constexpr int64_t kMost = int64_t(1) << 30;
  const int64_t taps = p.rows.taps, stride = p.rows.stride;
  if (!is_depthwise(p)) return op::refuse(kNeedsOneChannel);
  if (p.columns.taps != taps || p.columns.stride != stride || (taps != 3 && taps != 5) ||
      stride > 2 || p.rows.dilation != 1 || p.columns.dilation != 1)
    return op::refuse("needs a square window of 3 or 5 taps, strides of 1 or 2 and no dilation");
  const Config c = sliding_config(int(taps), int(stride), given.activation);
  if (p.groups % c.vector != 0 ||
      !op::has_channel_vectors(p.x, p.x_at, c.vector, given.element_bytes) ||
      !has_result_vectors(p, c.vector, given.element_bytes))
    return op::refuse("needs pairs of channels side by side, at multiples of their size");
  const Strips strips = strips_of(p, given, gpu);
  if (p.batch * strips.pieces * strips.segments >= kMost || strips.blocks > op::kMaxBlocks ||
      !is_small(p.w_at, p.groups) || !is_small(p.x_at, p.rows.in, p.columns.in) ||
      !is_small(p.out_at, p.rows.out, p.columns.out) ||
      !is_small(p.residual_at, p.rows.out, p.columns.out))
    return op::refuse(
        "needs fewer than 2^30 strips, and images and filters of fewer than 2^30 elements");
  return Start{.config = c, .blocks = strips.blocks, .min_blocks = sliding_blocks(c, given)};
}
inline void cut_strips(Params& p, const Given& given, const op::Gpu& gpu) {
  const Strips strips = strips_of(p, given, gpu);
  p.strip_rows = int(strips.rows);
  p.strips = uint32_t(p.batch * strips.pieces * strips.segments);
  p.by_pieces = Divider::of(strips.pieces);
  p.by_segments = Divider::of(strips.segments);
}

}  // namespace tensorcraft::kernel::conv2d

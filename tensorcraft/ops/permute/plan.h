// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/launch_plan.h"
#include "tensorcraft/ops/permute/params.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

// Which Config and grid each rung gets; host only. A `problem` is why a rung declines, or empty.
namespace tensorcraft::kernel::permute {

using Launch = op::LaunchPlan<Config>;

inline constexpr int kThreads = 256, kVectorBytes = 16;

// What is moved: two tensors of one shape, elements of 1, 2, 4 or 8 bytes.
struct Move {
  const void* in;
  void* out;
  Axes axes;
  int element_bytes;
  bool is_wide;  // 32 bits do not count the elements

  int last() const { return axes.count - 1; }
  int64_t size() const {
    int64_t elements = 1;
    for (int i = 0; i < axes.count; ++i) elements *= axes.size[i];
    return elements;
  }
};

inline void remove_axis(Axes& axes, int axis) {
  for (int i = axis; i + 1 < axes.count; ++i) {
    axes.size[i] = axes.size[i + 1];
    axes.in_stride[i] = axes.in_stride[i + 1];
    axes.out_stride[i] = axes.out_stride[i + 1];
  }
  const int last = --axes.count;
  axes.size[last] = axes.in_stride[last] = axes.out_stride[last] = 0;
}

// The axes by their strides in the output, largest first, merged wherever both tensors allow it.
inline Axes merged_axes(int rank, const int64_t* shape, const int64_t* in_strides,
                        const int64_t* out_strides) {
  Axes axes{};
  for (int i = 0; i < rank; ++i) {
    if (shape[i] == 1) continue;
    int at = axes.count++;
    for (; at > 0 && std::abs(axes.out_stride[at - 1]) < std::abs(out_strides[i]); --at) {
      axes.size[at] = axes.size[at - 1];
      axes.in_stride[at] = axes.in_stride[at - 1];
      axes.out_stride[at] = axes.out_stride[at - 1];
    }
    axes.size[at] = shape[i];
    axes.in_stride[at] = in_strides[i];
    axes.out_stride[at] = out_strides[i];
  }
  for (int i = axes.count - 1; i > 0; --i) {
    const int64_t inner = axes.size[i];
    if (axes.in_stride[i - 1] != axes.in_stride[i] * inner ||
        axes.out_stride[i - 1] != axes.out_stride[i] * inner)
      continue;
    axes.size[i] *= axes.size[i - 1];
    remove_axis(axes, i - 1);
  }
  return axes;
}

inline Move make_move(const void* in, void* out, int element_bytes, int rank, const int64_t* shape,
                      const int64_t* in_strides, const int64_t* out_strides) {
  Move m{.in = in,
         .out = out,
         .axes = merged_axes(rank, shape, in_strides, out_strides),
         .element_bytes = element_bytes,
         .is_wide = false};
  m.is_wide = m.size() >= int64_t(1) << 31;
  return m;
}

// `count` matrices of rows x cols elements, each dense and row-major, to cols x rows.
inline Move transpose_move(const void* in, void* out, int element_bytes, int64_t count,
                           int64_t rows, int64_t cols) {
  const int64_t shape[] = {count, cols, rows}, in_strides[] = {rows * cols, 1, cols},
                out_strides[] = {rows * cols, rows, 1};
  return make_move(in, out, element_bytes, 3, shape, in_strides, out_strides);
}

inline Params naive_params(const Move& m) {
  return {.in = m.in, .out = m.out, .count = m.size(), .axes = m.axes};
}

inline Launch naive_launch(const Move& m) {
  const Config config{.threads = kThreads, .wide = m.is_wide};
  return {config, div_ceil(m.size(), int64_t(kThreads))};
}

inline std::string_view vectorized_problem(const Move& m) {
  if (m.axes.count == 0) return "";
  if (m.axes.in_stride[m.last()] != 1 || m.axes.out_stride[m.last()] != 1)
    return "neighbours of the output must be neighbours of the input";
  return "";
}

// One run of memory on both sides; its end need not be a whole unit.
inline bool is_one_run(const Move& m) {
  return m.axes.count <= 1 && op::is_vector_aligned(m.in) && op::is_vector_aligned(m.out);
}

// The largest power of two up to 16 bytes in which rows can be moved.
inline int unit_bytes(const Move& m) {
  if (is_one_run(m)) return kVectorBytes;
  uint64_t all = reinterpret_cast<uintptr_t>(m.in) | reinterpret_cast<uintptr_t>(m.out) | 16;
  const auto bytes = uint64_t(m.element_bytes);
  for (int i = 0; i < m.axes.count; ++i) {
    if (i == m.last())
      all |= uint64_t(m.axes.size[i]) * bytes;
    else
      all |= uint64_t(m.axes.in_stride[i]) * bytes | uint64_t(m.axes.out_stride[i]) * bytes;
  }
  return m.axes.count == 0 ? m.element_bytes : int(all & (~all + 1));
}

inline Params vectorized_params(const Move& m) {
  const int unit = unit_bytes(m);
  Params p = naive_params(m);
  for (int i = 0; i < m.last(); ++i) {
    p.axes.in_stride[i] = m.axes.in_stride[i] * m.element_bytes / unit;
    p.axes.out_stride[i] = m.axes.out_stride[i] * m.element_bytes / unit;
  }
  if (m.axes.count > 0) p.axes.size[m.last()] = m.axes.size[m.last()] * m.element_bytes / unit;
  p.count = m.size() * m.element_bytes / unit;
  p.tail = m.size() * m.element_bytes % unit;
  return p;
}

// Few units spread over all SMs rather than fill a thread.
inline Launch vectorized_launch(const Move& m, int num_sms) {
  constexpr int kMany = 4, kBlocksPerSm = 4;
  const int unit = unit_bytes(m), vector = unit == kVectorBytes ? 2 : 1;
  const int64_t count = std::max<int64_t>(m.size() * m.element_bytes / unit, 1);
  const bool fills_device = count >= int64_t(kThreads) * kMany * kBlocksPerSm * num_sms;
  const Config config{.threads = kThreads,
                      .vector_in = vector,
                      .vector_out = vector,
                      .vectors = fills_device ? kMany : 1,
                      .wide = m.is_wide};
  return {config, div_ceil(count, int64_t(kThreads) * config.vectors)};
}

// The axis along which the input has neighbours; -1 where there is none but that of the output.
inline int input_axis(const Move& m) {
  for (int i = 0; i < m.last(); ++i)
    if (m.axes.in_stride[i] == 1) return i;
  return -1;
}

inline int64_t num_tiles(const Move& m, int tile) {
  const int axis = input_axis(m);
  int64_t tiles = 1;
  for (int i = 0; i < m.axes.count; ++i)
    tiles *= i == axis || i == m.last() ? div_ceil(m.axes.size[i], tile) : m.axes.size[i];
  return tiles;
}

// Lines of 128 bytes; twice that for 4 and 8 bytes, where there are tiles for every SM.
inline int tile_size(const Move& m, int num_sms) {
  if (m.element_bytes <= 2) return 128 / m.element_bytes;
  if (m.element_bytes == 8) return 32;
  return num_tiles(m, 64) >= int64_t(4) * num_sms ? 64 : 32;
}

inline std::string_view tiled_problem(const Move& m) {
  if (m.axes.count < 2 || m.axes.out_stride[m.last()] != 1 || input_axis(m) < 0)
    return "each tensor needs neighbours along an axis of its own";
  if (m.axes.in_stride[m.last()] == 1)
    return "neighbours stay neighbours: there is nothing to turn";
  if (num_tiles(m, 32) > op::kMaxBlocks) return "there are more tiles than a grid has blocks";
  return "";
}

// Why a row below is better: of such a tile nearly all would be empty.
inline std::string_view tiled_waste(const Move& m) {
  const int64_t shorter = std::min(m.axes.size[m.last()], m.axes.size[input_axis(m)]);
  return shorter * m.element_bytes < 32 ? "an axis of the tile has less than 32 bytes" : "";
}

inline Params tiled_params(const Move& m, int num_sms) {
  constexpr int64_t kBand = 32;
  const int tile = tile_size(m, num_sms), axis = input_axis(m), last = m.last();
  Params p{.in = m.in, .out = m.out, .axes = m.axes};
  p.rows = m.axes.size[last];
  p.cols = m.axes.size[axis];
  p.in_step = m.axes.in_stride[last];
  p.out_step = m.axes.out_stride[axis];
  const auto tiles_of = [&](int64_t n) {  // an empty call has none, but divides by them
    return std::max<int64_t>(div_ceil(n, int64_t(tile)), 1);
  };
  const int64_t row_tiles = tiles_of(p.rows), col_tiles = tiles_of(p.cols),
                band = std::min(kBand, col_tiles);
  p.by_matrix = Divider::of(row_tiles * col_tiles);
  p.by_band = Divider::of(row_tiles * band);
  p.by_width = Divider::of(band);
  p.last_band = uint32_t((col_tiles - 1) / band);
  p.by_last_width = Divider::of(col_tiles - p.last_band * band);
  remove_axis(p.axes, last);
  remove_axis(p.axes, axis);
  return p;
}

inline Launch tiled_launch(const Move& m, int num_sms) {
  const Params p = tiled_params(m, num_sms);
  const int tile = tile_size(m, num_sms), unit = kVectorBytes / m.element_bytes;
  bool in_units = op::is_vector_aligned(m.in) && p.cols % unit == 0 && p.in_step % unit == 0,
       out_units = op::is_vector_aligned(m.out) && p.rows % unit == 0 && p.out_step % unit == 0;
  for (int i = 0; i < p.axes.count; ++i) {
    in_units = in_units && p.axes.in_stride[i] % unit == 0;
    out_units = out_units && p.axes.out_stride[i] % unit == 0;
  }
  const Config config{.threads = kThreads,
                      .vector_in = in_units ? unit : 1,
                      .vector_out = out_units ? unit : 1,
                      .tile = tile};
  return {config, num_tiles(m, tile)};
}

}  // namespace tensorcraft::kernel::permute

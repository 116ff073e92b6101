// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/ops/permute/params.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::permute {

using Choice = op::Choice<Config>;

// Facts of a call that Params do not hold, whose axes are those of the whole call until adapt.
struct Given {
  int element_bytes;  // 1, 2, 4 or 8
};

inline constexpr int kThreads = 256, kVectorBytes = 16;

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

inline Params make_params(const void* in, void* out, int rank, const int64_t* shape,
                          const int64_t* in_strides, const int64_t* out_strides) {
  Params p{
      .in = in, .out = out, .count = 1, .axes = merged_axes(rank, shape, in_strides, out_strides)};
  for (int i = 0; i < rank; ++i) p.count *= shape[i];
  return p;
}

// `count` matrices of rows x cols elements, each dense and row-major, to cols x rows.
inline Params contiguous_params(const void* in, void* out, int64_t count, int64_t rows,
                                int64_t cols) {
  const int64_t shape[] = {count, cols, rows}, in_strides[] = {rows * cols, 1, cols},
                out_strides[] = {rows * cols, rows, 1};
  return make_params(in, out, 3, shape, in_strides, out_strides);
}

inline bool is_wide(const Params& p) { return p.count >= int64_t(1) << 31; }

inline Choice naive(const Params& p, const Given&, const op::Gpu&) {
  return op::Start<Config>{{.threads = kThreads, .wide = is_wide(p)},
                           div_ceil(p.count, int64_t(kThreads))};
}

// The largest power of two up to 16 bytes in which rows can be moved; 16 bytes if both sides are
// one run of memory, whose end need not be a whole unit.
inline int unit_bytes(const Params& p, const Given& given) {
  const Axes& axes = p.axes;
  if (axes.count <= 1 && op::is_vector_aligned(p.in) && op::is_vector_aligned(p.out))
    return kVectorBytes;
  if (axes.count == 0) return given.element_bytes;
  const int last = axes.count - 1;
  const auto bytes = uint64_t(given.element_bytes);
  uint64_t all = reinterpret_cast<uintptr_t>(p.in) | reinterpret_cast<uintptr_t>(p.out) |
                 kVectorBytes | uint64_t(axes.size[last]) * bytes;
  for (int i = 0; i < last; ++i)
    all |= uint64_t(axes.in_stride[i]) * bytes | uint64_t(axes.out_stride[i]) * bytes;
  return int(all & (~all + 1));
}

// Few units spread over all SMs rather than fill a thread.
inline Choice vectorized(const Params& p, const Given& given, const op::Gpu& gpu) {
  constexpr int kMany = 4, kBlocksPerSm = 4;
  const int last = p.axes.count - 1;
  if (last >= 0 && (p.axes.in_stride[last] != 1 || p.axes.out_stride[last] != 1))
    return op::refuse("neighbours of the output must be neighbours of the input");
  const int unit = unit_bytes(p, given), vector = unit == kVectorBytes ? 2 : 1;
  const int64_t count = std::max<int64_t>(p.count * given.element_bytes / unit, 1);
  const bool fills_device = count >= int64_t(kThreads) * kMany * kBlocksPerSm * gpu.num_sms;
  const Config config{.threads = kThreads,
                      .vector_in = vector,
                      .vector_out = vector,
                      .vectors = fills_device ? kMany : 1,
                      .wide = is_wide(p)};
  return op::Start<Config>{config, div_ceil(count, int64_t(kThreads) * config.vectors)};
}

// Elements become units.
inline void count_units(Params& p, const Given& given, const op::Gpu&) {
  const int unit = unit_bytes(p, given), last = p.axes.count - 1;
  const int64_t bytes = p.count * given.element_bytes;
  const auto to_units = [&](int64_t& elements) {
    elements = elements * given.element_bytes / unit;
  };
  for (int i = 0; i < last; ++i) {
    to_units(p.axes.in_stride[i]);
    to_units(p.axes.out_stride[i]);
  }
  if (last >= 0) to_units(p.axes.size[last]);
  p.count = bytes / unit;
  p.tail = bytes % unit;
}

// The axis along which the input has neighbours; -1 if there is none but that of the output.
inline int input_axis(const Axes& axes) {
  for (int i = 0; i < axes.count - 1; ++i)
    if (axes.in_stride[i] == 1) return i;
  return -1;
}

inline int64_t num_tiles(const Axes& axes, int tile) {
  const int axis = input_axis(axes), last = axes.count - 1;
  int64_t tiles = 1;
  for (int i = 0; i < axes.count; ++i)
    tiles *= i == axis || i == last ? div_ceil(axes.size[i], tile) : axes.size[i];
  return tiles;
}

// Lines of 128 bytes; twice that for 4 and 8 bytes, if there are tiles for every SM.
inline int tile_size(const Axes& axes, const Given& given, const op::Gpu& gpu) {
  if (given.element_bytes <= 2) return 128 / given.element_bytes;
  if (given.element_bytes == 8) return 32;
  return num_tiles(axes, 64) >= int64_t(4) * gpu.num_sms ? 64 : 32;
}

// The matrix of the two axes of a tile, and how blocks share its tiles.
inline void take_tiles(Params& p, const Given& given, const op::Gpu& gpu) {
  constexpr int64_t kBand = 32;
  const int tile = tile_size(p.axes, given, gpu), axis = input_axis(p.axes),
            last = p.axes.count - 1;
  p.rows = p.axes.size[last];
  p.cols = p.axes.size[axis];
  p.in_step = p.axes.in_stride[last];
  p.out_step = p.axes.out_stride[axis];
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
}

// Why tiles cannot be turned, or empty.
inline std::string_view tiled_refusal(const Axes& axes) {
  const int last = axes.count - 1;
  if (axes.count < 2 || axes.out_stride[last] != 1 || input_axis(axes) < 0)
    return "each tensor needs neighbours along an axis of its own";
  if (axes.in_stride[last] == 1) return "neighbours stay neighbours: there is nothing to turn";
  if (num_tiles(axes, 32) > op::kMaxBlocks) return "there are more tiles than a grid has blocks";
  return "";
}

inline Choice tiled(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = tiled_refusal(p.axes); !why.empty()) return op::refuse(why);
  Params t = p;
  take_tiles(t, given, gpu);
  const int tile = tile_size(p.axes, given, gpu), unit = kVectorBytes / given.element_bytes;
  bool in_units = op::is_vector_aligned(p.in) && t.cols % unit == 0 && t.in_step % unit == 0,
       out_units = op::is_vector_aligned(p.out) && t.rows % unit == 0 && t.out_step % unit == 0;
  for (int i = 0; i < t.axes.count; ++i) {
    in_units = in_units && t.axes.in_stride[i] % unit == 0;
    out_units = out_units && t.axes.out_stride[i] % unit == 0;
  }
  const Config config{.threads = kThreads,
                      .vector_in = in_units ? unit : 1,
                      .vector_out = out_units ? unit : 1,
                      .tile = tile};
  // Nearly all of a tile would be empty.
  const bool is_thin = std::min(t.rows, t.cols) * given.element_bytes < 32;
  return {op::Start<Config>{config, num_tiles(p.axes, tile)},
          is_thin ? "an axis of the tile has less than 32 bytes" : ""};
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "tiled",
     .file = "02_tiled.cuh",
     .idea = "turns tiles in shared memory: long lines and 16-byte accesses on both sides",
     .choose = tiled,
     .adapt = take_tiles},
    {.name = "vectorized",
     .file = "01_vectorized.cuh",
     .idea = "rows in units of up to 16 bytes, several in flight in each thread",
     .choose = vectorized,
     .adapt = count_units},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread an element, any strides",
     .choose = naive,
     .general = op::with_wide<Config>},
};

}  // namespace tensorcraft::kernel::permute

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/launch_plan.h"
#include "tensorcraft/ops/gemm/params.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <string_view>

// Which Config and grid each rung gets; host only. A Problem has the matrices
// d, a, b and where given c, a bias, and m(), n(), k(), batch(). A matrix is a
// view with rank(), shape(i), stride(i), is_aligned(bytes), and functions
// row_stride, col_stride, element_bytes beside it.
namespace tensorcraft::kernel::gemm {

using Launch = op::LaunchPlan<Config>;

// A shipped tile. `rate` compares tiles on a full device: larger ones use each
// byte more often.
struct TileShape {
  int block_m, block_n,
      block_k;         // on tensor cores block_k counts 16-bit elements
  int part_m, part_n;  // of a warp on tensor cores, of a thread elsewhere
  int threads, min_blocks;
  double rate;
  int stages = 1;
};
inline constexpr TileShape kNaiveTiles[] = {{32, 8, 0, 1, 1, 256, 1, 1}};
inline constexpr TileShape kCoalescedTiles[] = {{8, 32, 0, 1, 1, 256, 1, 1}};
inline constexpr TileShape kBlockTiles[] = {{32, 32, 32, 4, 1, 256, 1, 1}};
inline constexpr TileShape kThreadTiles[] = {{128, 128, 8, 8, 8, 256, 1, 1},
                                             {64, 64, 16, 4, 4, 256, 1, 0.6}};
inline constexpr TileShape kVectorTiles[] = {{128, 128, 8, 8, 8, 256, 1, 1},
                                             {64, 64, 16, 4, 4, 256, 1, 0.6}};
inline constexpr TileShape kTensorCoreTiles[] = {{128, 256, 32, 64, 64, 256, 1, 1},
                                                 {128, 128, 32, 64, 64, 128, 2, 0.9},
                                                 {64, 128, 32, 32, 64, 128, 2, 0.65},
                                                 {64, 64, 32, 32, 32, 128, 2, 0.5}};

inline constexpr TileShape kAsyncTiles[] = {{128, 128, 16, 8, 8, 256, 2, 1, 3},
                                            {64, 128, 16, 8, 8, 128, 2, 0.7, 4},
                                            {64, 64, 16, 8, 4, 128, 3, 0.56, 4},
                                            {32, 64, 16, 4, 4, 128, 4, 0.37, 4}};
inline constexpr TileShape kSwizzledTiles[] = {
    {256, 128, 64, 64, 64, 256, 1, 1, 4},    {128, 256, 64, 64, 64, 256, 1, 0.95, 4},
    {128, 128, 64, 64, 64, 128, 2, 0.98, 3}, {64, 256, 64, 64, 64, 128, 2, 0.85, 2},
    {128, 64, 64, 64, 32, 128, 2, 0.75, 4},  {64, 128, 64, 32, 64, 128, 2, 0.75, 4},
    {64, 64, 64, 32, 32, 128, 3, 0.6, 4},    {32, 128, 64, 32, 32, 128, 3, 0.5, 4},
    {32, 64, 64, 16, 32, 128, 4, 0.35, 4}};
// Of a block; the blocks of a cluster have two such tiles side by side.
inline constexpr TileShape kTmaTiles[] = {{256, 128, 64, 64, 64, 256, 1, 1, 4},
                                          {128, 128, 64, 64, 64, 128, 2, 0.98, 3}};
// Rounding takes registers, which a warp's 64 x 64 sums leave too few of.
inline constexpr TileShape kTf32Tiles[] = {
    {128, 128, 32, 64, 32, 256, 1, 1, 5},   {128, 64, 32, 64, 32, 128, 2, 0.85, 5},
    {64, 128, 32, 32, 64, 128, 2, 0.85, 5}, {64, 64, 32, 32, 32, 128, 2, 0.65, 5},
    {32, 128, 32, 32, 32, 128, 2, 0.55, 5}, {32, 64, 32, 16, 32, 128, 3, 0.35, 5}};

template <class Problem>
int64_t num_tiles(const Problem& q, const TileShape& t) {
  const double tiles =
      double(div_ceil(q.m(), t.block_m)) * double(div_ceil(q.n(), t.block_n)) * double(q.batch());
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  return tiles > double(most) ? most + 1 : int64_t(tiles);
}

// The busiest multiprocessor computes ceil(tiles / SMs) tiles; the tile that
// finishes first wins.
template <class Problem>
const TileShape& best_tile(const Problem& q, int num_sms, std::span<const TileShape> tiles) {
  const auto time = [&](const TileShape& t) {
    const int64_t rounds = div_ceil(num_tiles(q, t), int64_t(std::max(num_sms, 1)));
    return double(rounds) * t.block_m * t.block_n / t.rate;
  };
  return *std::min_element(tiles.begin(), tiles.end(),
                           [&](const auto& x, const auto& y) { return time(x) < time(y); });
}

// What a rung gets of a rows x cols matrix. Along a size of 1 no stride is used but for addresses
// behind the matrix, from which nothing is copied: with 0 they stay aligned.
inline Matrix matrix_of(const void* data, int64_t rows, int64_t cols, int64_t row_stride,
                        int64_t col_stride) {
  return {.data = const_cast<void*>(data),
          .row_stride = rows > 1 ? row_stride : 0,
          .col_stride = cols > 1 ? col_stride : 0};
}

// The index with stride 1. Along a size of 1 no stride matters, so any will do.
inline bool is_unit(int64_t size, int64_t stride) { return stride == 1 || size == 1; }
template <class View>
bool has_unit_stride(const View& t) {
  const int r = t.rank();
  return is_unit(t.shape(r - 1), col_stride(t)) || is_unit(t.shape(r - 2), row_stride(t));
}
template <class View>
Layout layout_of(const View& t) {
  const int r = t.rank();
  if (col_stride(t) == 1 && t.shape(r - 1) > 1) return Layout::row_major;
  if (row_stride(t) == 1 && t.shape(r - 2) > 1) return Layout::column_major;
  return is_unit(t.shape(r - 1), col_stride(t)) ? Layout::row_major : Layout::column_major;
}

// The most elements, up to `most`, that divide the extent along the unit
// stride, every other stride and the address: one access can move that many.
template <class View>
int vector_of(const View& t, Layout layout, int most) {
  const int unit = t.rank() - (layout == Layout::row_major ? 1 : 2);
  if (t.shape(unit) > 1 && t.stride(unit) != 1) return 1;
  const auto fits = [&](int v) {
    if (t.shape(unit) % v || !t.is_aligned(size_t(v) * element_bytes(t))) return false;
    for (int i = 0; i < t.rank(); ++i)
      if (i != unit && t.shape(i) > 1 && t.stride(i) % v) return false;
    return true;
  };
  int v = most;
  while (!fits(v)) v /= 2;
  return v;
}

template <class Problem>
Config make_config(const Problem& q, const TileShape& t) {
  const int most = 16 / int(element_bytes(q.a));
  Config c{.block_m = t.block_m, .block_n = t.block_n, .block_k = t.block_k, .threads = t.threads};
  c.a_layout = layout_of(q.a);
  c.b_layout = layout_of(q.b);
  c.a_vector = vector_of(q.a, c.a_layout, most);
  c.b_vector = vector_of(q.b, c.b_layout, most);
  c.d_vector = vector_of(q.d, Layout::row_major, 4) == 4 ? 4 : 1;
  c.activation = q.activation;
  c.has_c = q.c.has_value();
  c.has_bias = q.bias.has_value();
  return c;
}

template <class Problem>
Launch launch(const Problem& q, const TileShape& t, const Config& c, int min_blocks = 1,
              int shared_bytes = 0) {
  return {c, num_tiles(q, t), min_blocks, shared_bytes};
}

// The rungs that take any strides read single elements, so one kernel serves
// every alignment.
template <class Problem>
Launch elements_launch(const Problem& q, const TileShape& t) {
  Config c = make_config(q, t);
  c.a_vector = c.b_vector = c.d_vector = 1;
  return launch(q, t, c);
}

template <class Problem>
Launch naive_launch(const Problem& q) {
  return elements_launch(q, kNaiveTiles[0]);
}

template <class Problem>
Launch coalesced_launch(const Problem& q) {
  return elements_launch(q, kCoalescedTiles[0]);
}

template <class Problem>
Launch block_tiled_launch(const Problem& q) {
  return elements_launch(q, kBlockTiles[0]);
}

template <class Problem>
Launch thread_tiled_launch(const Problem& q, int num_sms,
                           std::span<const TileShape> tiles = kThreadTiles) {
  const TileShape& t = best_tile(q, num_sms, tiles);
  Config c = make_config(q, t);
  c.a_vector = c.b_vector = c.d_vector = 1;
  c.thread_m = t.part_m;
  c.thread_n = t.part_n;
  return launch(q, t, c);
}

template <class Problem>
Launch vectorized_launch(const Problem& q, int num_sms,
                         std::span<const TileShape> tiles = kVectorTiles) {
  const TileShape& t = best_tile(q, num_sms, tiles);
  Config c = make_config(q, t);
  c.thread_m = t.part_m;
  c.thread_n = t.part_n;
  // Two blocks leave 128 registers a thread: enough for 16-byte accesses of
  // float32, while single elements need more for addresses and 16-bit elements
  // more for conversion.
  const bool two_blocks = element_bytes(q.a) == 4 && c.a_vector == 4 && c.b_vector == 4;
  return launch(q, t, c, two_blocks ? 2 : 1);
}

template <class Problem>
Launch async_launch(const Problem& q, int num_sms, std::span<const TileShape> tiles = kAsyncTiles) {
  const TileShape& t = best_tile(q, num_sms, tiles);
  Config c = make_config(q, t);
  c.thread_m = t.part_m;
  c.thread_n = t.part_n;
  c.warp_m = t.part_m * kAsyncLanesM;
  c.warp_n = t.part_n * kAsyncLanesN;
  c.stages = t.stages;
  // Along k a copy is one element; elsewhere 16 bytes or one element.
  if (c.a_layout == Layout::row_major || c.a_vector < 4) c.a_vector = 1;
  if (c.b_layout == Layout::column_major || c.b_vector < 4) c.b_vector = 1;
  return launch(q, t, c, t.min_blocks, async_shared_bytes(c));
}

// The config of a rung on tensor cores, whose steps along k are as many bytes
// for every dtype.
template <class Problem>
Config warp_config(const Problem& q, const TileShape& t) {
  Config c = make_config(q, t);
  c.block_k = t.block_k * 2 / int(element_bytes(q.a));
  c.warp_m = t.part_m;
  c.warp_n = t.part_n;
  return c;
}

template <class Problem>
Launch tensor_core_launch(const Problem& q, int num_sms,
                          std::span<const TileShape> tiles = kTensorCoreTiles) {
  const TileShape& t = best_tile(q, num_sms, tiles);
  const Config c = warp_config(q, t);
  return launch(q, t, c, t.min_blocks, tensor_core_shared_bytes(c, int(element_bytes(q.a))));
}

// Tiles of 32-bit operands are kTf32Tiles, of others kSwizzledTiles;
// `shared_bytes` is what a block of the device may have.
template <class Problem>
Launch swizzled_launch(const Problem& q, int num_sms, size_t shared_bytes,
                       std::span<const TileShape> tiles) {
  const TileShape& t = best_tile(q, num_sms, tiles);
  const int bytes = int(element_bytes(q.a));
  Config c = warp_config(q, t);
  if (c.a_vector * bytes < 16) c.a_vector = 1;  // lines end inside a chunk
  if (c.b_vector * bytes < 16) c.b_vector = 1;
  // Some architectures have less shared memory than others; two stages of any
  // tile fit them all.
  const int stage_bytes = c.block_k * (c.block_m + c.block_n) * bytes;
  c.stages = std::clamp(int(shared_bytes) / stage_bytes, 2, t.stages);
  return launch(q, t, c, t.min_blocks, swizzled_shared_bytes(c, bytes));
}

template <class Problem>
Launch tma_launch(const Problem& q, int num_sms, size_t shared_bytes,
                  std::span<const TileShape> tiles = kTmaTiles) {
  const TileShape& t = best_tile(q, num_sms, tiles);
  Config c = warp_config(q, t);
  c.a_vector = c.b_vector = 1;  // the copy engine takes lines of any length
  c.stages = t.stages;
  while (c.stages > 2 && size_t(tma_shared_bytes(c, 2)) > shared_bytes) --c.stages;
  TileShape pair = t;
  pair.block_n *= kTmaCluster;
  Launch plan = launch(q, pair, c, t.min_blocks, tma_shared_bytes(c, 2));
  plan.blocks *= kTmaCluster;
  plan.cluster = kTmaCluster;
  return plan;
}

}  // namespace tensorcraft::kernel::gemm

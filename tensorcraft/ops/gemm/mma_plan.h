// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/rung.h"
#include "tensorcraft/ops/gemm/config_plan.h"
#include "tensorcraft/ops/gemm/params.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::gemm {

using Start = op::Start<Config>;
using Choice = op::Choice<Config>;

// What the call says besides Params.
struct Given {
  int operand_bytes, result_bytes;  // of an element
  int64_t batch = 1;                // entries, which may outnumber the 32 bits of batch_shape
  Activation activation = Activation::none;
  bool has_c = false, has_bias = false;
  bool allow_tf32 = false;   // float32 operands may be rounded
  bool splits_tf32 = false;  // they may become two parts of tf32 instead
  GemmConfig config = {};    // what the caller fixed
  bool is_float32() const { return operand_bytes == 4; }
};

// A shipped tile of D and its parts, of a warp on tensor cores, else of a thread.
struct TileShape {
  struct Size {
    int m, n, k = 0;
  };
  Size block;  // k is one step along k, on tensor cores in 16-bit elements
  Size part;
  int min_blocks = 1;
  double rate = 1;  // compares tiles on a full device: larger ones use each byte more often
  int stages = 1;   // steps along k in shared memory at once
  constexpr int num_parts() const { return block.m / part.m * (block.n / part.n); }
};

inline constexpr TileShape kNaiveTile{.block = {32, 8}, .part = {1, 1}};
inline constexpr TileShape kCoalescedTile{.block = {8, 32}, .part = {1, 1}};
inline constexpr TileShape kBlockTile{.block = {32, 32, 32}, .part = {4, 1}};
// thread_tiled and vectorized.
inline constexpr TileShape kThreadTiles[] = {{.block = {128, 128, 8}, .part = {8, 8}},
                                             {.block = {64, 64, 16}, .part = {4, 4}, .rate = 0.6}};
inline constexpr TileShape kAsyncTiles[] = {
    {.block = {128, 128, 16}, .part = {8, 8}, .min_blocks = 2, .stages = 3},
    {.block = {64, 128, 16}, .part = {8, 8}, .min_blocks = 2, .rate = 0.7, .stages = 4},
    {.block = {64, 64, 16}, .part = {8, 4}, .min_blocks = 3, .rate = 0.56, .stages = 4},
    {.block = {32, 64, 16}, .part = {4, 4}, .min_blocks = 4, .rate = 0.37, .stages = 4}};
inline constexpr TileShape kTensorCoreTiles[] = {
    {.block = {128, 256, 32}, .part = {64, 64}},
    {.block = {128, 128, 32}, .part = {64, 64}, .min_blocks = 2, .rate = 0.9},
    {.block = {64, 128, 32}, .part = {32, 64}, .min_blocks = 2, .rate = 0.65},
    {.block = {64, 64, 32}, .part = {32, 32}, .min_blocks = 2, .rate = 0.5}};
inline constexpr TileShape kSwizzledTiles[] = {
    {.block = {256, 128, 64}, .part = {64, 64}, .stages = 4},
    {.block = {128, 256, 64}, .part = {64, 64}, .rate = 0.95, .stages = 4},
    {.block = {128, 128, 64}, .part = {64, 64}, .min_blocks = 2, .rate = 0.98, .stages = 3},
    {.block = {64, 256, 64}, .part = {64, 64}, .min_blocks = 2, .rate = 0.85, .stages = 2},
    {.block = {128, 64, 64}, .part = {64, 32}, .min_blocks = 2, .rate = 0.75, .stages = 4},
    {.block = {64, 128, 64}, .part = {32, 64}, .min_blocks = 2, .rate = 0.75, .stages = 4},
    {.block = {64, 64, 64}, .part = {32, 32}, .min_blocks = 3, .rate = 0.6, .stages = 4},
    {.block = {32, 128, 64}, .part = {32, 32}, .min_blocks = 3, .rate = 0.5, .stages = 4},
    {.block = {32, 64, 64}, .part = {16, 32}, .min_blocks = 4, .rate = 0.35, .stages = 4}};
// swizzled_tf32: rounding takes registers, which a warp's 64 x 64 sums leave too few of.
inline constexpr TileShape kTf32Tiles[] = {
    {.block = {128, 128, 32}, .part = {64, 32}, .stages = 5},
    {.block = {128, 64, 32}, .part = {64, 32}, .min_blocks = 2, .rate = 0.85, .stages = 5},
    {.block = {64, 128, 32}, .part = {32, 64}, .min_blocks = 2, .rate = 0.85, .stages = 5},
    {.block = {64, 64, 32}, .part = {32, 32}, .min_blocks = 2, .rate = 0.65, .stages = 5},
    {.block = {32, 128, 32}, .part = {32, 32}, .min_blocks = 2, .rate = 0.55, .stages = 5},
    {.block = {32, 64, 32}, .part = {16, 32}, .min_blocks = 3, .rate = 0.35, .stages = 5}};
// The blocks of a cluster have two such tiles side by side.
inline constexpr TileShape kTmaTiles[] = {
    {.block = {256, 128, 64}, .part = {64, 64}, .stages = 4},
    {.block = {128, 128, 64}, .part = {64, 64}, .min_blocks = 2, .rate = 0.98, .stages = 3}};

// What a tile gives of a Config; the rest is the call's.
constexpr Config element_tile(const TileShape& t) {
  return {.block_m = t.block.m,
          .block_n = t.block.n,
          .block_k = t.block.k,
          .threads = t.num_parts(),
          .stages = t.stages};
}
constexpr Config thread_tile(const TileShape& t) {
  Config c = element_tile(t);
  c.thread_m = t.part.m;
  c.thread_n = t.part.n;
  return c;
}
// A thread has its part of a warp's part.
constexpr Config async_tile(const TileShape& t) {
  Config c = thread_tile(t);
  c.warp_m = t.part.m * kAsyncLanesM;
  c.warp_n = t.part.n * kAsyncLanesN;
  return c;
}
// On tensor cores; a step along k has as many bytes for every dtype.
constexpr Config warp_tile(const TileShape& t, int operand_bytes) {
  Config c = element_tile(t);
  c.block_k = t.block.k * 2 / operand_bytes;
  c.warp_m = t.part.m;
  c.warp_n = t.part.n;
  c.threads = 32 * t.num_parts();
  return c;
}

// A matrix as Params have it. Along a size of 1 no stride is used but for addresses behind the
// matrix, from which nothing is copied: with 0 they stay aligned.
inline Matrix matrix_of(const void* data, int64_t rows, int64_t cols, int64_t row_stride,
                        int64_t col_stride) {
  return {.data = const_cast<void*>(data),
          .row_stride = rows > 1 ? row_stride : 0,
          .col_stride = cols > 1 ? col_stride : 0};
}

// One product of dense matrices: A and B in the order of their layouts, C and D row-major. C counts
// only if beta is not 0: else it may hold NaN.
inline Params contiguous_params(const void* a, Layout a_layout, const void* b, Layout b_layout,
                                const void* c, void* d, int64_t m, int64_t n, int64_t k,
                                float alpha, float beta) {
  const auto dense = [](const void* data, int64_t rows, int64_t cols, Layout layout) {
    return layout == Layout::row_major ? matrix_of(data, rows, cols, cols, 1)
                                       : matrix_of(data, rows, cols, 1, rows);
  };
  return {.m = m,
          .n = n,
          .k = k,
          .a = dense(a, m, k, a_layout),
          .b = dense(b, k, n, b_layout),
          .c = beta != 0 ? dense(c, m, n, Layout::row_major) : Matrix{},
          .d = dense(d, m, n, Layout::row_major),
          .alpha = alpha,
          .beta = beta};
}

// A matrix as lines along the index with stride 1. Along a size of 1 no stride matters.
struct Lines {
  const Params& call;
  const Matrix& matrix;
  Layout layout;            // row_major: the rows are the lines
  int64_t length, count;    // elements of a line, lines
  int64_t step, next_line;  // strides
  int element_bytes;

  bool are_dense() const { return length <= 1 || step == 1; }
  // Do all lines start at multiples of `elements`, counted from the first?
  bool start_at_multiples(int elements) const {
    if (next_line % elements) return false;
    for (int i = 0; i < call.batch_rank; ++i)
      if (call.batch_shape[i] > 1 && matrix.batch_strides[i] % elements) return false;
    return true;
  }
  bool is_aligned(int bytes) const {
    return reinterpret_cast<uintptr_t>(matrix.data) % unsigned(bytes) == 0;
  }
};
inline Lines lines_of(const Params& p, const Matrix& x, int64_t rows, int64_t cols,
                      int element_bytes, Layout layout) {
  if (layout == Layout::row_major)
    return {p, x, layout, cols, rows, x.col_stride, x.row_stride, element_bytes};
  return {p, x, layout, rows, cols, x.row_stride, x.col_stride, element_bytes};
}
inline Layout layout_of(const Matrix& x, int64_t cols) {
  if (x.col_stride == 1) return Layout::row_major;
  if (x.row_stride == 1) return Layout::column_major;
  return cols <= 1 ? Layout::row_major : Layout::column_major;
}
inline Lines a_lines(const Params& p, const Given& given) {
  return lines_of(p, p.a, p.m, p.k, given.operand_bytes, layout_of(p.a, p.k));
}
inline Lines b_lines(const Params& p, const Given& given) {
  return lines_of(p, p.b, p.k, p.n, given.operand_bytes, layout_of(p.b, p.n));
}

// The most elements, up to `most`, that divide a line, the distances of lines and the address: one
// access can move that many.
inline int vector_of(const Lines& x, int most) {
  if (!x.are_dense()) return 1;
  int v = most;
  while (v > 1 && (x.length % v || !x.start_at_multiples(v) || !x.is_aligned(v * x.element_bytes)))
    v /= 2;
  return v;
}

// Every line starts at a multiple of 16 bytes; its length is free.
inline bool has_aligned_lines(const Lines& x) {
  return x.is_aligned(16) && x.start_at_multiples(16 / x.element_bytes);
}

// Can the copy engine walk along the lines and entries? It does not see a batch dimension of
// stride 0.
inline bool has_engine_strides(const Lines& x, int64_t batch) {
  constexpr int64_t kMax = int64_t(1) << 30;  // coordinates have 32 bits, strides 40
  const int64_t next_entry = x.call.batch_rank ? x.matrix.batch_strides[0] : 0;
  return std::max({x.length, x.count, batch, x.next_line, next_entry}) <= kMax &&
         x.next_line >= (x.count > 1) && next_entry >= 0;
}

inline int64_t num_tiles(const Params& p, const Given& given, int block_m, int block_n) {
  const double tiles =
      double(div_ceil(p.m, block_m)) * double(div_ceil(p.n, block_n)) * double(given.batch);
  return tiles > double(op::kMaxBlocks) ? op::kMaxBlocks + 1 : int64_t(tiles);
}

// How long the busiest multiprocessor computes, if blocks are spread evenly.
struct Load {
  int64_t rounds;
  double busy;  // share of that time that multiprocessors compute on average
};
inline Load load_of(int64_t blocks, const op::Gpu& gpu) {
  const int64_t sms = std::max(gpu.num_sms, 1),
                rounds = std::max<int64_t>(div_ceil(blocks, sms), 1);
  return {rounds, double(blocks) / double(rounds * sms)};
}

// The tile that finishes first wins, among those that `config_of` makes what the caller wants; if
// there is none, any of them.
template <class ConfigOf>
const TileShape& best_tile(const Params& p, const Given& given, const op::Gpu& gpu,
                           std::span<const TileShape> tiles, const ConfigOf& config_of) {
  const bool is_free = given.config == GemmConfig{};
  const auto time = [&](const TileShape& t) {
    if (!is_free && !fits(config_of(t), given.config)) return HUGE_VAL;
    const Load load = load_of(num_tiles(p, given, t.block.m, t.block.n), gpu);
    return double(load.rounds) * t.block.m * t.block.n / t.rate;
  };
  return *std::min_element(tiles.begin(), tiles.end(),
                           [&](const auto& x, const auto& y) { return time(x) < time(y); });
}

// What best_tile() weighs, as Rung::weigh gives it.
template <class ConfigOf>
void weigh_tiles(op::Candidates<Config>& all, const Params& p, const Given& given,
                 const op::Gpu& gpu, std::span<const TileShape> tiles, const ConfigOf& config_of) {
  for (const bool wants_any : {false, true}) {
    for (const TileShape& t : tiles) {
      const Config c = config_of(t);
      const Load load = load_of(num_tiles(p, given, c.block_m, c.block_n), gpu);
      if (wants_any || fits(c, given.config)) all.add({c, 0, load.rounds, load.busy});
    }
    if (all.size() > 0) return;
  }
}

// The Config of a tile with what the call says: layouts, the widest accesses, the epilogue.
inline Config for_call(const Params& p, const Given& given, Config c) {
  const Lines a = a_lines(p, given), b = b_lines(p, given);
  const Lines d = lines_of(p, p.d, p.m, p.n, given.result_bytes, Layout::row_major);
  c.a_layout = a.layout;
  c.b_layout = b.layout;
  c.a_vector = vector_of(a, 16 / given.operand_bytes);
  c.b_vector = vector_of(b, 16 / given.operand_bytes);
  c.d_vector = vector_of(d, 4) == 4 ? 4 : 1;
  c.activation = given.activation;
  c.has_c = given.has_c;
  c.has_bias = given.has_bias;
  return c;
}

inline Start start(const Params& p, const Given& given, const Config& c, int min_blocks = 1,
                   int shared_bytes = 0) {
  return {c, num_tiles(p, given, c.block_m, c.block_n), min_blocks, shared_bytes};
}

inline Choice choice(std::string_view refusal, const Start& start, std::string_view later = {}) {
  if (!refusal.empty()) return op::refuse(refusal);
  if (start.blocks > op::kMaxBlocks) return op::refuse("needs 2^31 blocks or more");
  return {start, later};
}

// The rungs that take any strides read single elements, so one kernel serves every alignment.
inline Choice any_strides(const Params& p, const Given& given, const Config& tile) {
  Config c = for_call(p, given, tile);
  c.a_vector = c.b_vector = c.d_vector = 1;
  return choice({}, start(p, given, c));
}

inline Choice naive(const Params& p, const Given& given, const op::Gpu&) {
  return any_strides(p, given, element_tile(kNaiveTile));
}

inline Choice coalesced(const Params& p, const Given& given, const op::Gpu&) {
  return any_strides(p, given, element_tile(kCoalescedTile));
}

inline Choice block_tiled(const Params& p, const Given& given, const op::Gpu&) {
  return any_strides(p, given, element_tile(kBlockTile));
}

inline Choice thread_tiled(const Params& p, const Given& given, const op::Gpu& gpu) {
  return any_strides(p, given, thread_tile(best_tile(p, given, gpu, kThreadTiles, thread_tile)));
}

inline std::string_view unit_stride_refusal(const Params& p, const Given& given) {
  if (!a_lines(p, given).are_dense()) return "a has no axis with stride 1";
  return b_lines(p, given).are_dense() ? "" : "b has no axis with stride 1";
}

inline Choice vectorized(const Params& p, const Given& given, const op::Gpu& gpu) {
  const Config c =
      for_call(p, given, thread_tile(best_tile(p, given, gpu, kThreadTiles, thread_tile)));
  // Two blocks leave 128 registers a thread: enough for 16-byte accesses of float32, while single
  // elements need more for addresses and 16-bit elements more for conversion.
  const bool two_blocks = given.is_float32() && c.a_vector == 4 && c.b_vector == 4;
  return choice(unit_stride_refusal(p, given), start(p, given, c, two_blocks ? 2 : 1));
}

inline Choice async(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (!given.is_float32())
    return op::refuse("takes float32 operands: a copy in flight cannot convert");
  if (!gpu.has_cp_async()) return op::refuse("needs sm_80 or newer");
  const TileShape& t = best_tile(p, given, gpu, kAsyncTiles, async_tile);
  Config c = for_call(p, given, async_tile(t));
  // Along k a copy is one element; elsewhere 16 bytes or one element.
  if (c.a_layout == Layout::row_major || c.a_vector < 4) c.a_vector = 1;
  if (c.b_layout == Layout::column_major || c.b_vector < 4) c.b_vector = 1;
  return choice(unit_stride_refusal(p, given),
                start(p, given, c, t.min_blocks, async_shared_bytes(c)));
}

// Why a rung on tensor cores cannot take the operands, or empty; `tf32`: the rung rounds float32.
inline std::string_view tensor_core_refusal(const Params& p, const Given& given, const op::Gpu& gpu,
                                            bool tf32) {
  if (given.is_float32() != tf32)
    return tf32 ? "takes float32 operands"
                : "takes 16-bit operands; for float32 there are the tf32 variants";
  if (tf32 && !given.allow_tf32)
    return "float32 would be rounded to tf32, which allow_tf32 is not set for";
  if (!gpu.has_cp_async()) return "needs sm_80 or newer";
  return unit_stride_refusal(p, given);
}

inline Config tensor_core_config(const Params& p, const Given& given, const TileShape& t) {
  return for_call(p, given, warp_tile(t, given.operand_bytes));
}

// A choice of its own: GEMMInterface has the same tiles in another order.
inline Start tensor_core_start(const Params& p, const Given& given, const op::Gpu& gpu,
                               std::span<const TileShape> tiles = kTensorCoreTiles) {
  const auto config_of = [&](const TileShape& t) { return tensor_core_config(p, given, t); };
  const TileShape& t = best_tile(p, given, gpu, tiles, config_of);
  const Config c = config_of(t);
  return start(p, given, c, t.min_blocks, tensor_core_shared_bytes(c, given.operand_bytes));
}
template <bool tf32>
void weigh_tensor_core(op::Candidates<Config>& all, const Params& p, const Given& given,
                       const op::Gpu& gpu) {
  if (!tensor_core_refusal(p, given, gpu, tf32).empty()) return;
  weigh_tiles(all, p, given, gpu, kTensorCoreTiles,
              [&](const TileShape& t) { return tensor_core_config(p, given, t); });
}

inline Choice tensor_core(const Params& p, const Given& given, const op::Gpu& gpu) {
  return choice(tensor_core_refusal(p, given, gpu, false), tensor_core_start(p, given, gpu));
}

inline Choice tensor_core_tf32(const Params& p, const Given& given, const op::Gpu& gpu) {
  return choice(tensor_core_refusal(p, given, gpu, true), tensor_core_start(p, given, gpu));
}

inline std::string_view swizzled_refusal(const Params& p, const Given& given, const op::Gpu& gpu,
                                         bool tf32) {
  if (const auto why = tensor_core_refusal(p, given, gpu, tf32); !why.empty()) return why;
  if (!has_aligned_lines(a_lines(p, given)))
    return "a line of a does not start at a multiple of 16 bytes";
  return has_aligned_lines(b_lines(p, given))
             ? ""
             : "a line of b does not start at a multiple of 16 bytes";
}

inline std::span<const TileShape> swizzled_tiles(const Given& given) {
  if (given.is_float32()) return kTf32Tiles;
  return kSwizzledTiles;
}
inline Config swizzled_config(const Params& p, const Given& given, const op::Gpu& gpu,
                              const TileShape& t) {
  const int bytes = given.operand_bytes;
  Config c = for_call(p, given, warp_tile(t, bytes));
  if (c.a_vector * bytes < 16) c.a_vector = 1;  // lines end inside a chunk
  if (c.b_vector * bytes < 16) c.b_vector = 1;
  // Some architectures have less shared memory than others; two stages of any tile fit them all.
  const int stage_bytes = c.block_k * (c.block_m + c.block_n) * bytes;
  const int most = std::clamp(int(gpu.shared_bytes_per_block) / stage_bytes, 2, t.stages);
  c.stages = given.config.stages ? std::clamp(given.config.stages, 2, most) : most;
  return c;
}

inline Start swizzled_start(const Params& p, const Given& given, const op::Gpu& gpu) {
  const auto config_of = [&](const TileShape& t) { return swizzled_config(p, given, gpu, t); };
  const TileShape& t = best_tile(p, given, gpu, swizzled_tiles(given), config_of);
  const Config c = config_of(t);
  return start(p, given, c, t.min_blocks, swizzled_shared_bytes(c, given.operand_bytes));
}
template <bool tf32>
void weigh_swizzled(op::Candidates<Config>& all, const Params& p, const Given& given,
                    const op::Gpu& gpu) {
  if (!swizzled_refusal(p, given, gpu, tf32).empty()) return;
  weigh_tiles(all, p, given, gpu, swizzled_tiles(given),
              [&](const TileShape& t) { return swizzled_config(p, given, gpu, t); });
}

inline Choice swizzled(const Params& p, const Given& given, const op::Gpu& gpu) {
  return choice(swizzled_refusal(p, given, gpu, false), swizzled_start(p, given, gpu));
}

inline Choice swizzled_tf32(const Params& p, const Given& given, const op::Gpu& gpu) {
  return choice(swizzled_refusal(p, given, gpu, true), swizzled_start(p, given, gpu));
}

inline std::string_view tma_refusal(const Params& p, const Given& given, const op::Gpu& gpu,
                                    bool tf32 = false) {
  if (!gpu.has_clusters()) return "needs sm_90 or newer";
  if (gpu.architecture >= 120) return "sm_120 copies no tile into two blocks at once";
  if (const auto why = swizzled_refusal(p, given, gpu, tf32); !why.empty()) return why;
  if (p.batch_rank > 1) return "takes one batch axis, or several that merge into one";
  if (!has_engine_strides(a_lines(p, given), given.batch))
    return "a has a stride or a size that the copy engine cannot take";
  return has_engine_strides(b_lines(p, given), given.batch)
             ? ""
             : "b has a stride or a size that the copy engine cannot take";
}

inline Config tma_config(const Params& p, const Given& given, const op::Gpu& gpu,
                         const TileShape& t) {
  Config c = for_call(p, given, warp_tile(t, given.operand_bytes));
  c.a_vector = c.b_vector = 1;  // the copy engine takes lines of any length
  c.cluster_n = kTmaCluster;
  while (c.stages > 2 && tma_shared_bytes(c, 2) > gpu.shared_bytes_per_block) --c.stages;
  return c;
}
inline void weigh_tma(op::Candidates<Config>& all, const Params& p, const Given& given,
                      const op::Gpu& gpu) {
  if (!tma_refusal(p, given, gpu).empty()) return;
  weigh_tiles(all, p, given, gpu, kTmaTiles,
              [&](const TileShape& t) { return tma_config(p, given, gpu, t); });
}

inline Choice tma(const Params& p, const Given& given, const op::Gpu& gpu) {
  if (const auto why = tma_refusal(p, given, gpu); !why.empty()) return op::refuse(why);
  const auto config_of = [&](const TileShape& t) { return tma_config(p, given, gpu, t); };
  const TileShape &t = best_tile(p, given, gpu, kTmaTiles, config_of), &largest = kTmaTiles[0];
  const Config c = config_of(t);
  const int64_t pairs = num_tiles(p, given, c.block_m, c.block_n * kTmaCluster);
  // Its tiles are large, and a pair begins and ends together: measured from 2048^3 on, where 128
  // tiles meet 132 multiprocessors, it wins.
  const int64_t tiles = num_tiles(p, given, largest.block.m, largest.block.n);
  return choice({},
                {.config = c,
                 .blocks = pairs * kTmaCluster,
                 .min_blocks = t.min_blocks,
                 .shared_bytes = tma_shared_bytes(c, 2),
                 .cluster = kTmaCluster},
                tiles * 10 < int64_t(gpu.num_sms) * 9
                    ? "swizzled has smaller tiles for so small a result"
                    : "");
}

}  // namespace tensorcraft::kernel::gemm

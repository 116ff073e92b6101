// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/gemm_plan.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/ops/gemm/params.h"
#include "tensorcraft/ops/gemm/gemm_simt.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

namespace tensorcraft::kernel::gemm {
namespace {

static_assert(int(Activation::silu) == int(op::Activation::silu), "one order of activations");
static_assert(kMaxBatchRank == kMaxRank - 2);

std::string config_text(const void* config) {
  constexpr std::string_view layouts[] = {"row_major", "column_major"};
  constexpr std::string_view ns = "tensorcraft::kernel::gemm::";
  const auto& c = *static_cast<const Config*>(config);
  const auto layout = [&](Layout l) { return join(ns, "Layout::", layouts[int(l)]); };
  return join(ns, "Config{.block_m = ", c.block_m, ", .block_n = ", c.block_n,
              ", .block_k = ", c.block_k, ", .warp_m = ", c.warp_m, ", .warp_n = ", c.warp_n,
              ", .thread_m = ", c.thread_m, ", .thread_n = ", c.thread_n,
              ", .threads = ", c.threads, ", .stages = ", c.stages,
              ", .a_layout = ", layout(c.a_layout), ", .b_layout = ", layout(c.b_layout),
              ", .a_vector = ", c.a_vector, ", .b_vector = ", c.b_vector,
              ", .d_vector = ", c.d_vector, ", .activation = ", ns,
              "Activation::", op::EnumNames<op::Activation>::names[size_t(c.activation)],
              ", .has_c = ", c.has_c, ", .has_bias = ", c.has_bias, "}");
}

constexpr std::string_view kParams = "tensorcraft::kernel::gemm::Params";
const jit::Rung kNaive{"tensorcraft/ops/gemm/00_naive.cuh", "tensorcraft::kernel::gemm::naive",
                       kParams, config_text, naive_instances};
const jit::Rung kCoalesced{"tensorcraft/ops/gemm/01_coalesced.cuh",
                           "tensorcraft::kernel::gemm::coalesced", kParams, config_text,
                           coalesced_instances};
const jit::Rung kBlockTiled{"tensorcraft/ops/gemm/02_block_tiled.cuh",
                            "tensorcraft::kernel::gemm::block_tiled", kParams, config_text,
                            block_tiled_instances};
const jit::Rung kThreadTiled{"tensorcraft/ops/gemm/03_thread_tiled.cuh",
                             "tensorcraft::kernel::gemm::thread_tiled", kParams, config_text,
                             thread_tiled_instances};
const jit::Rung kVectorized{"tensorcraft/ops/gemm/04_vectorized.cuh",
                            "tensorcraft::kernel::gemm::vectorized", kParams, config_text,
                            vectorized_instances};
const jit::Rung kAsync{"tensorcraft/ops/gemm/05_async.cuh", "tensorcraft::kernel::gemm::async",
                       kParams, config_text, async_instances};
const jit::Rung kTensorCore{"tensorcraft/ops/gemm/06_tensor_core.cuh",
                            "tensorcraft::kernel::gemm::tensor_core", kParams, config_text,
                            tensor_core_instances};
const jit::Rung kTensorCoreTf32{"tensorcraft/ops/gemm/06_tensor_core.cuh",
                                "tensorcraft::kernel::gemm::tensor_core_tf32", kParams, config_text,
                                tensor_core_tf32_instances};
const jit::Rung kSwizzled{"tensorcraft/ops/gemm/07_swizzled.cuh",
                          "tensorcraft::kernel::gemm::swizzled", kParams, config_text,
                          swizzled_instances};
const jit::Rung kSwizzledTf32{"tensorcraft/ops/gemm/07_swizzled.cuh",
                              "tensorcraft::kernel::gemm::swizzled_tf32", kParams, config_text,
                              swizzled_tf32_instances};

// A shipped tile. `rate` compares tiles on a full device: larger ones use each byte more often.
struct TileShape {
  int block_m, block_n, block_k;  // on tensor cores block_k counts 16-bit elements
  int part_m, part_n;             // of a warp on tensor cores, of a thread elsewhere
  int threads, min_blocks;
  double rate;
  int stages = 1;
};
constexpr TileShape kNaiveTiles[] = {{32, 8, 0, 1, 1, 256, 1, 1}};
constexpr TileShape kCoalescedTiles[] = {{8, 32, 0, 1, 1, 256, 1, 1}};
constexpr TileShape kBlockTiles[] = {{32, 32, 32, 4, 1, 256, 1, 1}};
constexpr TileShape kThreadTiles[] = {{128, 128, 8, 8, 8, 256, 1, 1},
                                      {64, 64, 16, 4, 4, 256, 1, 0.6}};
constexpr TileShape kVectorTiles[] = {{128, 128, 8, 8, 8, 256, 1, 1},
                                      {64, 64, 16, 4, 4, 256, 1, 0.6}};
constexpr TileShape kTensorCoreTiles[] = {{128, 256, 32, 64, 64, 256, 1, 1},
                                          {128, 128, 32, 64, 64, 128, 2, 0.9},
                                          {64, 128, 32, 32, 64, 128, 2, 0.65},
                                          {64, 64, 32, 32, 32, 128, 2, 0.5}};
constexpr TileShape kAsyncTiles[] = {
    {128, 256, 8, 8, 16, 256, 1, 1, 4},  {128, 128, 8, 8, 16, 128, 2, 0.95, 4},
    {128, 128, 8, 8, 8, 256, 2, 0.9, 4}, {64, 128, 16, 8, 8, 128, 2, 0.75, 4},
    {64, 64, 16, 8, 4, 128, 3, 0.6, 4},  {32, 64, 16, 4, 4, 128, 4, 0.4, 4}};
constexpr TileShape kSwizzledTiles[] = {
    {128, 256, 64, 64, 64, 256, 1, 1, 4},    {256, 128, 64, 64, 64, 256, 1, 1, 4},
    {128, 128, 64, 64, 64, 128, 2, 0.95, 3}, {64, 256, 64, 64, 64, 128, 2, 0.85, 2},
    {128, 64, 64, 64, 32, 128, 2, 0.75, 4},  {64, 128, 64, 32, 64, 128, 2, 0.75, 4},
    {64, 64, 64, 32, 32, 128, 3, 0.6, 4},    {32, 128, 64, 32, 32, 128, 3, 0.5, 4},
    {32, 64, 64, 16, 32, 128, 4, 0.35, 4}};
// Rounding takes registers, which a warp's 64 x 64 sums leave too few of.
constexpr TileShape kTf32Tiles[] = {
    {128, 128, 32, 64, 32, 256, 1, 1, 5},   {128, 64, 32, 64, 32, 128, 2, 0.85, 5},
    {64, 128, 32, 32, 64, 128, 2, 0.85, 5}, {64, 64, 32, 32, 32, 128, 2, 0.65, 5},
    {32, 128, 32, 32, 32, 128, 2, 0.55, 5}, {32, 64, 32, 16, 32, 128, 3, 0.35, 5}};

int64_t num_tiles(const Problem& q, const TileShape& t) {
  const double tiles =
      double(div_ceil(q.m(), t.block_m)) * double(div_ceil(q.n(), t.block_n)) * double(q.batch());
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  return tiles > double(most) ? most + 1 : int64_t(tiles);
}

// The busiest multiprocessor computes ceil(tiles / SMs) tiles; the tile that finishes first wins.
const TileShape& best_tile(const Problem& q, const DeviceInfo& device,
                           std::span<const TileShape> tiles) {
  const auto time = [&](const TileShape& t) {
    const int64_t rounds = div_ceil(num_tiles(q, t), int64_t(std::max(device.num_sms, 1)));
    return double(rounds) * t.block_m * t.block_n / t.rate;
  };
  return *std::min_element(tiles.begin(), tiles.end(),
                           [&](const auto& x, const auto& y) { return time(x) < time(y); });
}

// The index with stride 1. Along a size of 1 no stride matters, so any will do.
bool is_unit(int64_t size, int64_t stride) { return stride == 1 || size == 1; }
bool has_unit_stride(const TensorView& t) {
  const int r = t.rank();
  return is_unit(t.shape(r - 1), col_stride(t)) || is_unit(t.shape(r - 2), row_stride(t));
}
Layout layout_of(const TensorView& t) {
  const int r = t.rank();
  if (col_stride(t) == 1 && t.shape(r - 1) > 1) return Layout::row_major;
  if (row_stride(t) == 1 && t.shape(r - 2) > 1) return Layout::column_major;
  return is_unit(t.shape(r - 1), col_stride(t)) ? Layout::row_major : Layout::column_major;
}

// The most elements, up to `most`, that divide the extent along the unit stride, every other
// stride and the address: one access can move that many.
int vector_of(const TensorView& t, Layout layout, int most) {
  const int unit = t.rank() - (layout == Layout::row_major ? 1 : 2);
  if (t.shape(unit) > 1 && t.stride(unit) != 1) return 1;
  const auto fits = [&](int v) {
    if (t.shape(unit) % v || !t.is_aligned(size_t(v) * dtype_bytes(t.dtype()))) return false;
    for (int i = 0; i < t.rank(); ++i)
      if (i != unit && t.shape(i) > 1 && t.stride(i) % v) return false;
    return true;
  };
  int v = most;
  while (!fits(v)) v /= 2;
  return v;
}

Config make_config(const Problem& q, const TileShape& t) {
  const int most = 16 / int(dtype_bytes(q.a.dtype()));
  Config c{.block_m = t.block_m, .block_n = t.block_n, .block_k = t.block_k, .threads = t.threads};
  c.a_layout = layout_of(q.a);
  c.b_layout = layout_of(q.b);
  c.a_vector = vector_of(q.a, c.a_layout, most);
  c.b_vector = vector_of(q.b, c.b_layout, most);
  c.d_vector = vector_of(q.d, Layout::row_major, 4) == 4 ? 4 : 1;
  c.activation = Activation(q.activation);
  c.has_c = q.c.has_value();
  c.has_bias = q.bias.has_value();
  return c;
}

Matrix matrix(const TensorView& t) {
  Matrix x{.data = t.data(), .row_stride = row_stride(t), .col_stride = col_stride(t)};
  for (int i = 0; i < t.rank() - 2; ++i) x.batch_strides[i] = t.stride(i);
  return x;
}

Params params(const Problem& q) {
  Params p{.m = q.m(),
           .n = q.n(),
           .k = q.k(),
           .a = matrix(q.a),
           .b = matrix(q.b),
           .d = matrix(q.d),
           .alpha = q.alpha,
           .beta = q.beta,
           .batch_rank = q.batch_rank()};
  if (q.c) p.c = matrix(*q.c);
  if (q.bias) {
    p.bias = q.bias->data();
    p.bias_stride = q.bias->stride(0);
  }
  for (int i = 0; i < q.batch_rank(); ++i) p.batch_shape[i] = uint32_t(q.d.shape(i));
  return p;
}

op::Plan make_plan(const jit::Rung& rung, const Problem& q, const TileShape& t, const Config& c,
                   int min_blocks = 1, int shared_bytes = 0) {
  return op::make_plan(rung, {q.a.dtype(), q.d.dtype()}, c,
                       {.grid = {uint32_t(num_tiles(q, t))},
                        .block = {uint32_t(t.threads)},
                        .shared_bytes = uint32_t(shared_bytes)},
                       params(q), min_blocks);
}

// The rungs that take any strides read single elements, so one kernel serves every alignment.
op::Plan plan_elements(const jit::Rung& rung, const Problem& q, const TileShape& t) {
  Config c = make_config(q, t);
  c.a_vector = c.b_vector = c.d_vector = 1;
  return make_plan(rung, q, t, c);
}

// Every line along the unit stride starts at a multiple of 16 bytes; its length is free.
bool has_aligned_lines(const TensorView& t, Layout layout) {
  const int unit = t.rank() - (layout == Layout::row_major ? 1 : 2);
  if (!t.is_aligned(16)) return false;
  for (int i = 0; i < t.rank(); ++i)
    if (i != unit && t.shape(i) > 1 && t.stride(i) * int64_t(dtype_bytes(t.dtype())) % 16)
      return false;
  return true;
}

op::Verdict accepts_aligned_lines(const Problem& q) {
  if (!has_aligned_lines(q.a, layout_of(q.a)))
    return op::decline("a line of a does not start at a multiple of 16 bytes");
  if (!has_aligned_lines(q.b, layout_of(q.b)))
    return op::decline("a line of b does not start at a multiple of 16 bytes");
  return op::accept;
}

// The config of a rung on tensor cores, whose steps along k are as many bytes for every dtype.
Config warp_config(const Problem& q, const TileShape& t) {
  Config c = make_config(q, t);
  c.block_k = t.block_k * 2 / int(dtype_bytes(q.a.dtype()));
  c.warp_m = t.part_m;
  c.warp_n = t.part_n;
  return c;
}

op::Plan plan_tensor_core_as(const jit::Rung& rung, const Problem& q, const DeviceInfo& device) {
  const TileShape& t = best_tile(q, device, kTensorCoreTiles);
  const Config c = warp_config(q, t);
  return make_plan(rung, q, t, c, t.min_blocks,
                   tensor_core_shared_bytes(c, int(dtype_bytes(q.a.dtype()))));
}

op::Plan plan_swizzled_as(const jit::Rung& rung, const Problem& q, const DeviceInfo& device) {
  const bool tf32 = q.a.dtype() == DType::float32;
  const TileShape& t =
      tf32 ? best_tile(q, device, kTf32Tiles) : best_tile(q, device, kSwizzledTiles);
  const int element_bytes = int(dtype_bytes(q.a.dtype()));
  Config c = warp_config(q, t);
  if (c.a_vector * element_bytes < 16) c.a_vector = 1;  // lines end inside a chunk
  if (c.b_vector * element_bytes < 16) c.b_vector = 1;
  // Some architectures have less shared memory than others; two stages of any tile fit them all.
  const int stage_bytes = c.block_k * (c.block_m + c.block_n) * element_bytes;
  c.stages = std::clamp(int(device.shared_bytes_per_block) / stage_bytes, 2, t.stages);
  return make_plan(rung, q, t, c, t.min_blocks, swizzled_shared_bytes(c, element_bytes));
}

}  // namespace

void merge_batch(Problem& q) {
  std::array<TensorView*, 4> all{&q.d, &q.a, &q.b, q.c ? &*q.c : &q.d};
  Dims shape;
  std::array<Dims, 4> strides;
  for (int i = 0; i < q.batch_rank(); ++i) {
    if (q.d.shape(i) == 1) continue;
    bool joins = shape.rank() > 0;
    for (size_t t = 0; t < all.size() && joins; ++t)
      joins = strides[t].back() == all[t]->stride(i) * q.d.shape(i);
    if (joins)
      shape[shape.rank() - 1] *= q.d.shape(i);
    else
      shape.push_back(q.d.shape(i));
    for (size_t t = 0; t < all.size(); ++t) {
      if (joins)
        strides[t][shape.rank() - 1] = all[t]->stride(i);
      else
        strides[t].push_back(all[t]->stride(i));
    }
  }
  const auto merged = [&](const TensorView& t, Dims steps) {
    Dims sizes = shape;
    for (int i = t.rank() - 2; i < t.rank(); ++i) {
      sizes.push_back(t.shape(i));
      steps.push_back(t.stride(i));
    }
    return TensorView(t.data(), t.dtype(), sizes, steps, t.device());
  };
  if (q.c) q.c = merged(*q.c, strides[3]);
  q.a = merged(q.a, strides[1]);
  q.b = merged(q.b, strides[2]);
  q.d = merged(q.d, strides[0]);
}

op::Verdict accepts_any(const Problem& q, const DeviceInfo&) {
  if (num_tiles(q, kNaiveTiles[0]) > std::numeric_limits<int32_t>::max())
    return op::decline("needs 2^31 blocks or more");
  return op::accept;
}

op::Verdict accepts_vectorized(const Problem& q, const DeviceInfo& device) {
  if (!has_unit_stride(q.a)) return op::decline("a has no axis with stride 1");
  if (!has_unit_stride(q.b)) return op::decline("b has no axis with stride 1");
  return accepts_any(q, device);
}

op::Verdict accepts_async(const Problem& q, const DeviceInfo& device) {
  if (q.a.dtype() != DType::float32)
    return op::decline("takes float32 operands: a copy in flight cannot convert");
  if (device.compute_capability < 80) return op::decline("needs sm_80 or newer");
  return accepts_vectorized(q, device);
}

op::Verdict accepts_tensor_core(const Problem& q, const DeviceInfo& device) {
  if (q.a.dtype() == DType::float32)
    return op::decline("takes 16-bit operands; for float32 there are the tf32 variants");
  if (device.compute_capability < 80) return op::decline("needs sm_80 or newer");
  return accepts_vectorized(q, device);
}

op::Verdict accepts_tensor_core_tf32(const Problem& q, const DeviceInfo& device) {
  if (q.a.dtype() != DType::float32) return op::decline("takes float32 operands");
  if (!q.allow_tf32)
    return op::decline("float32 would be rounded to tf32, which allow_tf32 is not set for");
  if (device.compute_capability < 80) return op::decline("needs sm_80 or newer");
  return accepts_vectorized(q, device);
}

op::Verdict accepts_swizzled(const Problem& q, const DeviceInfo& device) {
  const op::Verdict verdict = accepts_tensor_core(q, device);
  return verdict.accepted() ? accepts_aligned_lines(q) : verdict;
}

op::Verdict accepts_swizzled_tf32(const Problem& q, const DeviceInfo& device) {
  const op::Verdict verdict = accepts_tensor_core_tf32(q, device);
  return verdict.accepted() ? accepts_aligned_lines(q) : verdict;
}

op::Plan plan_naive(const Problem& q, const DeviceInfo&) {
  return plan_elements(kNaive, q, kNaiveTiles[0]);
}

op::Plan plan_coalesced(const Problem& q, const DeviceInfo&) {
  return plan_elements(kCoalesced, q, kCoalescedTiles[0]);
}

op::Plan plan_block_tiled(const Problem& q, const DeviceInfo&) {
  return plan_elements(kBlockTiled, q, kBlockTiles[0]);
}

op::Plan plan_thread_tiled(const Problem& q, const DeviceInfo& device) {
  const TileShape& t = best_tile(q, device, kThreadTiles);
  Config c = make_config(q, t);
  c.a_vector = c.b_vector = c.d_vector = 1;
  c.thread_m = t.part_m;
  c.thread_n = t.part_n;
  return make_plan(kThreadTiled, q, t, c);
}

op::Plan plan_vectorized(const Problem& q, const DeviceInfo& device) {
  const TileShape& t = best_tile(q, device, kVectorTiles);
  Config c = make_config(q, t);
  c.thread_m = t.part_m;
  c.thread_n = t.part_n;
  // Two blocks leave 128 registers a thread: enough for 16-byte accesses of float32, while single
  // elements need more for addresses and 16-bit elements more for conversion.
  const bool two_blocks = q.a.dtype() == DType::float32 && c.a_vector == 4 && c.b_vector == 4;
  return make_plan(kVectorized, q, t, c, two_blocks ? 2 : 1);
}

op::Plan plan_async(const Problem& q, const DeviceInfo& device) {
  const TileShape& t = best_tile(q, device, kAsyncTiles);
  Config c = make_config(q, t);
  c.thread_m = t.part_m;
  c.thread_n = t.part_n;
  c.warp_m = t.part_m * 8;  // a warp's threads form 8 x 4
  c.warp_n = t.part_n * 4;
  c.stages = t.stages;
  // Along k a copy is one element; elsewhere 16 bytes or one element.
  if (c.a_layout == Layout::row_major || c.a_vector < 4) c.a_vector = 1;
  if (c.b_layout == Layout::column_major || c.b_vector < 4) c.b_vector = 1;
  return make_plan(kAsync, q, t, c, t.min_blocks, async_shared_bytes(c));
}

op::Plan plan_tensor_core(const Problem& q, const DeviceInfo& device) {
  return plan_tensor_core_as(kTensorCore, q, device);
}

op::Plan plan_tensor_core_tf32(const Problem& q, const DeviceInfo& device) {
  return plan_tensor_core_as(kTensorCoreTf32, q, device);
}

op::Plan plan_swizzled(const Problem& q, const DeviceInfo& device) {
  return plan_swizzled_as(kSwizzled, q, device);
}

op::Plan plan_swizzled_tf32(const Problem& q, const DeviceInfo& device) {
  return plan_swizzled_as(kSwizzledTf32, q, device);
}

}  // namespace tensorcraft::kernel::gemm

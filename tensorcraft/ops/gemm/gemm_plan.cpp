// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/gemm_plan.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/tensor_map.hpp"
#include "tensorcraft/ops/gemm/gemm_simt.hpp"
#include "tensorcraft/ops/gemm/params.h"
#include "tensorcraft/ops/gemm/plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

namespace tensorcraft::kernel::gemm {
namespace {

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
              ", .d_vector = ", c.d_vector, ", .activation = tensorcraft::Activation::",
              op::EnumNames<Activation>::names[size_t(c.activation)], ", .has_c = ", c.has_c,
              ", .has_bias = ", c.has_bias, "}");
}

constexpr int64_t kMaxTmaSize = int64_t(1) << 30;  // coordinates have 32 bits, strides 40

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
const jit::Rung kTma{"tensorcraft/ops/gemm/08_tma.cuh", "tensorcraft::kernel::gemm::tma",
                     "tensorcraft::kernel::gemm::TmaParams", config_text, tma_instances};

Matrix matrix(const TensorView& t) {
  const int r = t.rank();
  Matrix x = matrix_of(t.data(), t.shape(r - 2), t.shape(r - 1), row_stride(t), col_stride(t));
  for (int i = 0; i < r - 2; ++i) x.batch_strides[i] = t.stride(i);
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

op::Plan make_plan(const jit::Rung& rung, const Problem& q, const Launch& launch) {
  return op::make_plan(rung, {q.a.dtype(), q.d.dtype()}, launch, params(q));
}

// Every line along the unit stride starts at a multiple of 16 bytes; its length
// is free.
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

// What the engine can walk along the lines and entries of an operand; a batch axis with stride 0 it
// does not see.
bool has_engine_strides(const TensorView& t, Layout layout) {
  const int unit = t.rank() - (layout == Layout::row_major ? 1 : 2);
  for (int i = 0; i < t.rank(); ++i) {
    if (t.shape(i) > kMaxTmaSize) return false;
    const bool may_repeat = t.shape(i) == 1 || i < t.rank() - 2;
    if (i != unit && (t.stride(i) > kMaxTmaSize || t.stride(i) < (may_repeat ? 0 : 1)))
      return false;
  }
  return true;
}

// One copy of an operand: 128 bytes along the unit stride, `lines` lines.
TensorMap operand_map(const TensorView& t, Layout layout, int lines, const DeviceInfo& device) {
  if (t.size() == 0) return {};  // nothing is copied
  const int unit = t.rank() - (layout == Layout::row_major ? 1 : 2), line = 2 * t.rank() - 3 - unit;
  TiledTensor tiled{.dtype = t.dtype(),
                    .address = t.data(),
                    .rank = 3,
                    .dims = {uint64_t(t.shape(unit)), uint64_t(t.shape(line)), 1},
                    .strides = {16, 16},  // of sizes of 1
                    .box = {uint32_t(128 / dtype_bytes(t.dtype())), uint32_t(lines), 1},
                    .swizzle = TiledTensor::Swizzle::bytes_128};
  const auto bytes = [&](int i) { return uint64_t(t.stride(i)) * dtype_bytes(t.dtype()); };
  if (t.shape(line) > 1) tiled.strides[0] = bytes(line);
  if (t.rank() > 2 && t.stride(0) > 0) {
    tiled.dims[2] = uint64_t(t.shape(0));
    tiled.strides[1] = bytes(0);
  }
  return op::tensor_map(tiled, device);
}

op::Plan plan_swizzled_as(const jit::Rung& rung, const Problem& q, const DeviceInfo& device) {
  const bool tf32 = q.a.dtype() == DType::float32;
  const auto tiles =
      tf32 ? std::span<const TileShape>(kTf32Tiles) : std::span<const TileShape>(kSwizzledTiles);
  return make_plan(rung, q,
                   swizzled_launch(q, device.num_sms, device.shared_bytes_per_block, tiles));
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

op::Verdict accepts_tma(const Problem& q, const DeviceInfo& device) {
  if (device.compute_capability < 90) return op::decline("needs sm_90 or newer");
  if (device.compute_capability >= 120)
    return op::decline("sm_120 copies no tile into two blocks at once");
  const op::Verdict verdict = accepts_swizzled(q, device);
  if (!verdict.accepted()) return verdict;
  if (q.batch_rank() > 1)
    return op::decline("takes one batch axis, or several that merge into one");
  if (!has_engine_strides(q.a, layout_of(q.a)))
    return op::decline("a has a stride or a size that the copy engine cannot take");
  if (!has_engine_strides(q.b, layout_of(q.b)))
    return op::decline("b has a stride or a size that the copy engine cannot take");
  return op::accept;
}

// Its tiles are large, and a pair begins and ends together: measured from 2048^3 on, where 128
// tiles meet 132 multiprocessors, it wins.
op::Verdict suits_tma(const Problem& q, const DeviceInfo& device) {
  if (num_tiles(q, kTmaTiles[0]) * 10 < int64_t(device.num_sms) * 9)
    return op::decline("swizzled has smaller tiles for so small a result");
  return op::accept;
}

op::Plan plan_naive(const Problem& q, const DeviceInfo&) {
  return make_plan(kNaive, q, naive_launch(q));
}

op::Plan plan_coalesced(const Problem& q, const DeviceInfo&) {
  return make_plan(kCoalesced, q, coalesced_launch(q));
}

op::Plan plan_block_tiled(const Problem& q, const DeviceInfo&) {
  return make_plan(kBlockTiled, q, block_tiled_launch(q));
}

op::Plan plan_thread_tiled(const Problem& q, const DeviceInfo& device) {
  return make_plan(kThreadTiled, q, thread_tiled_launch(q, device.num_sms));
}

op::Plan plan_vectorized(const Problem& q, const DeviceInfo& device) {
  return make_plan(kVectorized, q, vectorized_launch(q, device.num_sms));
}

op::Plan plan_async(const Problem& q, const DeviceInfo& device) {
  return make_plan(kAsync, q, async_launch(q, device.num_sms));
}

op::Plan plan_tensor_core(const Problem& q, const DeviceInfo& device) {
  return make_plan(kTensorCore, q, tensor_core_launch(q, device.num_sms));
}

op::Plan plan_tensor_core_tf32(const Problem& q, const DeviceInfo& device) {
  return make_plan(kTensorCoreTf32, q, tensor_core_launch(q, device.num_sms));
}

op::Plan plan_swizzled(const Problem& q, const DeviceInfo& device) {
  return plan_swizzled_as(kSwizzled, q, device);
}

op::Plan plan_swizzled_tf32(const Problem& q, const DeviceInfo& device) {
  return plan_swizzled_as(kSwizzledTf32, q, device);
}

op::Plan plan_tma(const Problem& q, const DeviceInfo& device) {
  const Launch launch = tma_launch(q, device.num_sms, device.shared_bytes_per_block);
  const Config& c = launch.config;
  TmaParams p{params(q)};
  p.a_map = operand_map(q.a, c.a_layout, tma_a_lines(c), device);
  p.b_map = operand_map(q.b, c.b_layout, tma_b_lines(c), device);
  return op::make_plan(kTma, {q.a.dtype(), q.d.dtype()}, launch, p);
}

}  // namespace tensorcraft::kernel::gemm

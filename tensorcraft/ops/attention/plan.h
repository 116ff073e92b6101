// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/launch_plan.h"
#include "tensorcraft/ops/attention/params.h"

#include <cstddef>
#include <string_view>

// Which Config and grid each rung gets; host only. A `problem` is why a rung declines, or empty.
namespace tensorcraft::kernel::attention {

using Launch = op::LaunchPlan<Config>;

inline constexpr int kThreads = 128;

// Row-major q and out [batch, heads, seq_q, head_dim], k and v [batch, heads_k, seq_k, head_dim].
// An axis of one element has stride 0.
inline Params contiguous_params(const void* q, const void* k, const void* v, void* out, int batch,
                                int heads, int heads_k, int seq_q, int seq_k, int head_dim) {
  const auto strides = [&](int64_t of_heads, int64_t rows) {
    return Strides{.batch = batch > 1 ? of_heads * rows * head_dim : 0,
                   .head = of_heads > 1 ? rows * head_dim : 0,
                   .row = rows > 1 ? head_dim : 0};
  };
  return {.q = q,
          .k = k,
          .v = v,
          .out = out,
          .q_strides = strides(heads, seq_q),
          .k_strides = strides(heads_k, seq_k),
          .v_strides = strides(heads_k, seq_k),
          .out_strides = strides(heads, seq_q),
          .batch = batch,
          .heads = heads,
          .group = heads / heads_k,
          .seq_q = seq_q,
          .seq_k = seq_k,
          .head_dim = head_dim};
}

// Does every row of q, k, v and out start at a 16-byte boundary?
inline bool rows_aligned(const Params& p, int element_bytes) {
  const auto aligned = [&](const void* data, const Strides& s) {
    return op::is_vector_aligned(data) && s.batch * element_bytes % 16 == 0 &&
           s.head * element_bytes % 16 == 0 && s.row * element_bytes % 16 == 0;
  };
  return aligned(p.q, p.q_strides) && aligned(p.k, p.k_strides) && aligned(p.v, p.v_strides) &&
         aligned(p.out, p.out_strides);
}

// Tiles for which the accumulators fit the registers and the tiles every GPU's shared memory.
constexpr Config tiled_config(int head_dim) {
  const bool wide = head_dim > 128;
  return {.head_dim = head_dim,
          .block_m = wide ? 32 : 64,
          .block_n = wide ? 16 : 32,
          .threads = kThreads};
}

constexpr Config tensor_core_config(int head_dim, int seq_q) {
  // 32 rows a warp halve the reads of K and V from shared memory; they need long sequences to keep
  // every multiprocessor busy.
  const bool tall = head_dim == 64 && seq_q >= 512;
  return {.head_dim = head_dim,
          .block_m = tall ? 128 : 64,
          .block_n = head_dim > 128 ? 32 : 64,
          .threads = kThreads};
}

inline int64_t query_blocks(const Params& p, int block_m) {
  return int64_t(p.batch) * p.heads * div_ceil(p.seq_q, block_m);
}

inline Launch naive_launch(const Params& p) {
  return {{.threads = kThreads}, div_ceil(query_blocks(p, 1), kThreads / 32)};
}

inline Launch tiled_launch(const Params& p) {
  const Config config = tiled_config(p.head_dim);
  return {config, query_blocks(p, config.block_m), 1, tiled_shared_bytes(config)};
}

inline Launch tensor_core_launch(const Params& p) {
  const Config config = tensor_core_config(p.head_dim, p.seq_q);
  return {config, query_blocks(p, config.block_m), 1, tensor_core_shared_bytes(config)};
}

constexpr bool is_compiled_head_dim(int d) {
  return d == 32 || d == 64 || d == 96 || d == 128 || d == 256;
}

inline std::string_view naive_problem(const Params& p) {
  if (naive_launch(p).blocks > op::kMaxBlocks) return "batch * heads * seq_q must be below 2^33";
  return "";
}

// Of a rung that takes blocks of queries; `shared_bytes` is what a block of the device may have.
inline std::string_view blocks_problem(const Launch& launch, size_t shared_bytes) {
  if (launch.blocks > op::kMaxBlocks) return "batch * heads * seq_q / 64 must be below 2^31";
  if (size_t(launch.shared_bytes) > shared_bytes)
    return "needs more shared memory than a block of this GPU has";
  return "";
}

inline std::string_view tiled_problem(const Params& p, size_t shared_bytes) {
  if (!is_compiled_head_dim(p.head_dim)) return "head_dim must be 32, 64, 96, 128 or 256";
  return blocks_problem(tiled_launch(p), shared_bytes);
}

// `is_aligned`: every row of q, k, v and out starts at a 16-byte boundary.
inline std::string_view tensor_core_problem(const Params& p, bool is_aligned, size_t shared_bytes) {
  if (!is_compiled_head_dim(p.head_dim)) return "head_dim must be 32, 64, 96, 128 or 256";
  if (!is_aligned) return "rows of q, k, v and out must start at 16-byte boundaries";
  if (!(p.scale > 0)) return "scale must be positive";
  return blocks_problem(tensor_core_launch(p), shared_bytes);
}

}  // namespace tensorcraft::kernel::attention

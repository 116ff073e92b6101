// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/activation.h"
#include "tensorcraft/device/base.h"
#include "tensorcraft/device/tensor_map.h"

// D = act(alpha A B + beta C + bias) for one batch entry: A is m x k, B is k x n, C and D m x n.
namespace tensorcraft::kernel::gemm {

inline constexpr int kMaxBatchRank = 6;

// One matrix operand. Strides are in elements and may be 0 or negative, so a transposed, sliced or
// broadcast matrix needs no copy.
struct Matrix {
  void* data;
  int64_t row_stride, col_stride;
  int64_t batch_strides[kMaxBatchRank];
};

// Run time: what the host passes to every rung.
struct Params {
  int64_t m, n, k;
  Matrix a, b, c, d;
  const void* bias;
  int64_t bias_stride;
  float alpha, beta;
  uint32_t batch_shape[kMaxBatchRank];
  int32_t batch_rank;
};

// What tma needs besides: how the copy engine finds A and B, as 128 bytes along the unit stride,
// lines and batch.
struct TmaParams : Params {
  TensorMap a_map, b_map;
};

// Which index of a matrix has stride 1: neighbouring threads read along it.
enum class Layout : int { row_major, column_major };

// Compile time. Structural, without padding, and as small as a kernel's key allows.
struct Config {
  int block_m = 0, block_n = 0, block_k = 0;  // a block's tile of D, and one step along k
  int warp_m = 0, warp_n = 0;                 // a warp's part of it (from async on)
  int thread_m = 0, thread_n = 0;             // a thread's part of it (thread_tiled to async)
  int threads = 0;
  int stages = 1;   // steps along k that shared memory holds (async, swizzled), or registers (gemv)
  int split = 1;    // parts of k, each of a block of a cluster (gemv, skinny)
  int warps_k = 1;  // parts of those, each of a warp (gemv)
  int exchanged = 0;  // the weights are A, not B (gemv, skinny)
  Layout a_layout = Layout::row_major, b_layout = Layout::row_major;
  int a_vector = 1, b_vector = 1, d_vector = 1;  // elements one access moves
  Activation activation = Activation::none;
  int has_c = 0, has_bias = 0;
};

// Shared memory that the warps' sums pass through on their way out: 16 padded rows a warp.
TC_HOST_DEVICE constexpr int slab_bytes(const Config& c) {
  return c.threads / 32 * 16 * (c.warp_n + 8) * 4;
}

// Dynamic shared memory of tensor_core: two stages of both operands, each line padded by 16 bytes,
// or the slabs, whichever is more.
TC_HOST_DEVICE constexpr int tensor_core_shared_bytes(const Config& c, int element_bytes) {
  const int pad = 16 / element_bytes;
  const int a = c.a_layout == Layout::row_major ? c.block_m * (c.block_k + pad)
                                                : c.block_k * (c.block_m + pad);
  const int b = c.b_layout == Layout::row_major ? c.block_k * (c.block_n + pad)
                                                : c.block_n * (c.block_k + pad);
  const int stages = 2 * element_bytes * (a + b), slabs = slab_bytes(c);
  return stages > slabs ? stages : slabs;
}

// The threads of a warp over its part of a tile of `async`.
inline constexpr int kAsyncLanesM = 8, kAsyncLanesN = 4;

// Dynamic shared memory of async: rows of both panels are padded by 16 bytes.
TC_HOST_DEVICE constexpr int async_shared_bytes(const Config& c) {
  return c.stages * c.block_k * (c.block_m + c.block_n + 8) * 4;
}

// Dynamic shared memory of swizzled: lines without padding, or the slabs.
TC_HOST_DEVICE constexpr int swizzled_shared_bytes(const Config& c, int element_bytes) {
  const int stages = c.stages * c.block_k * (c.block_m + c.block_n) * element_bytes;
  const int slabs = slab_bytes(c);
  return stages > slabs ? stages : slabs;
}

// The blocks of tma that share their rows of A, and the lines that one copy brings.
inline constexpr int kTmaCluster = 2;
TC_HOST_DEVICE constexpr int tma_a_lines(const Config& c) {
  return c.a_layout == Layout::row_major ? c.block_m / kTmaCluster : c.block_k;
}
TC_HOST_DEVICE constexpr int tma_b_lines(const Config& c) {
  return c.b_layout == Layout::column_major ? c.block_n : c.block_k;
}
// Dynamic shared memory of tma: stages or slabs as in swizzled and two barriers a stage; a multiple
// of 1024, which the copy engine's swizzle needs.
TC_HOST_DEVICE constexpr int tma_shared_bytes(const Config& c, int element_bytes) {
  return round_up(swizzled_shared_bytes(c, element_bytes) + 2 * c.stages * 8, 1024);
}

// Products of a large matrix, the weights, with few tokens, by gemv and skinny. The weights are B
// and a token is a row of A; exchanged, the weights are A and a token is a column of B. An output
// of a token has a line of the weights: a column of B, or a row of A.
TC_HOST_DEVICE constexpr int block_tokens(const Config& c) {
  return c.exchanged ? c.block_n : c.block_m;
}
TC_HOST_DEVICE constexpr int block_outputs(const Config& c) {
  return c.exchanged ? c.block_m : c.block_n;
}
TC_HOST_DEVICE constexpr int warp_outputs(const Config& c) {
  return c.exchanged ? c.warp_m : c.warp_n;
}
// Whether k has the unit stride.
TC_HOST_DEVICE constexpr bool weights_along_k(const Config& c) {
  return c.exchanged ? c.a_layout == Layout::row_major : c.b_layout == Layout::column_major;
}
TC_HOST_DEVICE constexpr bool tokens_along_k(const Config& c) {
  return c.exchanged ? c.b_layout == Layout::column_major : c.a_layout == Layout::row_major;
}
TC_HOST_DEVICE constexpr int weights_vector(const Config& c) {
  return c.exchanged ? c.a_vector : c.b_vector;
}
TC_HOST_DEVICE constexpr int tokens_vector(const Config& c) {
  return c.exchanged ? c.b_vector : c.a_vector;
}

// Dynamic shared memory of skinny: stages of 16-bit operands, or the block's padded sums, and two
// barriers a stage. A line of tokens side by side is as wide as a box.
TC_HOST_DEVICE constexpr int skinny_stage_bytes(const Config& c) {
  return 2 * c.block_k * (block_outputs(c) + (tokens_along_k(c) ? block_tokens(c) : c.block_k));
}
TC_HOST_DEVICE constexpr int skinny_shared_bytes(const Config& c) {
  const int stages = c.stages * skinny_stage_bytes(c);
  const int sums = 4 * c.block_m * (c.block_n + (c.exchanged ? 8 : 4));
  return round_up((stages > sums ? stages : sums) + 2 * c.stages * 8, 1024);
}
// The lines of A and B that one copy of skinny brings.
TC_HOST_DEVICE constexpr int skinny_a_lines(const Config& c) {
  return c.a_layout == Layout::row_major ? c.block_m : c.block_k;
}
TC_HOST_DEVICE constexpr int skinny_b_lines(const Config& c) {
  return c.b_layout == Layout::column_major ? c.block_n : c.block_k;
}

}  // namespace tensorcraft::kernel::gemm

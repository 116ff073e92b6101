// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/parts/epilogue.cuh"

// A thread's outputs in groups of 4 x 4, a grid of threads apart: one access moves 4 floats.
namespace tensorcraft::kernel::gemm {

inline constexpr int kQuad = 4;  // floats in 16 bytes

// A thread's part of one row of a panel: groups of 4, `step` apart.
template <int N>
TC_DEVICE void load_quads(float (&to)[N], const float* from, int step) {
#pragma unroll
  for (int g = 0; g < N / kQuad; ++g) {
    const auto quad = load_vector<kQuad>(from + g * step);
#pragma unroll
    for (int j = 0; j < kQuad; ++j) to[g * kQuad + j] = quad[j];
  }
}

// sums += x y: what one k adds to a thread's outputs.
template <int M, int N>
TC_DEVICE void add_outer_product(float (&sums)[M][N], const float (&x)[M], const float (&y)[N]) {
#pragma unroll
  for (int i = 0; i < M; ++i) {
#pragma unroll
    for (int j = 0; j < N; ++j) sums[i][j] += x[i] * y[j];
  }
}

}  // namespace tensorcraft::kernel::gemm

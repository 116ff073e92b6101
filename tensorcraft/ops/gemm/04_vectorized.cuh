// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies move 16 bytes where thread_tiled moves one element, to and from shared memory too.
//
// A multiply step of 8 x 8 outputs needs (8 + 8) / 4 = 4 shared loads of 16 bytes instead of 16,
// for 64 multiply-adds. For that the tile of A lies transposed, with a thread's rows side by side,
// and rows of shared memory are padded by 16 bytes so that the transposing stores of a warp spread
// over the banks. A thread's outputs are groups of 4 x 4, a thread grid apart.
// It demands that A and B each have a unit stride; a_vector and b_vector elements must divide that
// extent, every other stride and the address. Vectors of 1 accept anything.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/gemm/epilogue.cuh"

namespace tensorcraft::kernel::gemm {

inline constexpr int kGroup = 4;  // floats in 16 bytes

template <Config C>
struct alignas(kVectorBytes) VectorizedShared {
  float a[C.block_k][C.block_m + kGroup], b[C.block_k][C.block_n + kGroup];
};

// Copies block_k x Size elements, `k_left` x `left` of them inside the matrix, to panel[k][i].
// AlongK: k is the index with stride 1, and a vector's elements go to different rows of the panel.
template <Config C, bool AlongK, int Vector, int Size, class T>
TC_DEVICE void copy_panel(float (&panel)[C.block_k][Size + kGroup], const T* from, int64_t stride,
                          int64_t k_left, int64_t left) {
  constexpr int per_line = (AlongK ? C.block_k : Size) / Vector;
  constexpr int vectors = C.block_k * Size / Vector;
#pragma unroll
  for (int n = 0; n < div_ceil(vectors, C.threads); ++n) {
    const int at = threadIdx.x + n * C.threads;
    if (vectors % C.threads != 0 && at >= vectors) break;
    const int line = at / per_line, along = at % per_line * Vector;
    const int k = AlongK ? along : line, i = AlongK ? line : along;
    AlignedVector<T, Vector> v = {};
    if (k < k_left && i < left) v = load_vector<Vector>(from + line * stride + along);
    if constexpr (AlongK || Vector < kGroup) {
#pragma unroll
      for (int j = 0; j < Vector; ++j) panel[k + AlongK * j][i + !AlongK * j] = float(v[j]);
    } else {
#pragma unroll
      for (int j = 0; j < Vector; j += kGroup) {
        const Vec4<float> group = {float(v[j]), float(v[j + 1]), float(v[j + 2]), float(v[j + 3])};
        store_vector(&panel[k][i + j], group);
      }
    }
  }
}

// A thread's part of one row of a panel: groups of 4, `step` apart.
template <int N>
TC_DEVICE void load_groups(float (&to)[N], const float* from, int step) {
#pragma unroll
  for (int g = 0; g < N / kGroup; ++g) {
    const auto group = load_vector<kGroup>(from + g * step);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) to[g * kGroup + j] = group[j];
  }
}

template <class T, class Out, Config C>
TC_DEVICE void vectorized(const Params& p) {
  constexpr int grid_m = C.block_m / C.thread_m, grid_n = C.block_n / C.thread_n;
  constexpr bool a_along_k = C.a_layout == Layout::row_major;
  constexpr bool b_along_k = C.b_layout == Layout::column_major;
  static_assert(C.threads == grid_m * grid_n, "the threads form a grid over the tile");
  static_assert(C.thread_m % kGroup == 0 && C.thread_n % kGroup == 0);
  auto& shared = static_shared<VectorizedShared<C>>();
  const BlockTile tile = block_tile<C>(p);
  const int row = threadIdx.x / grid_n * kGroup, col = threadIdx.x % grid_n * kGroup;
  const T* a = batch_entry<const T>(p, p.a, tile.batch) + tile.row * p.a.row_stride;
  const T* b = batch_entry<const T>(p, p.b, tile.batch) + tile.col * p.b.col_stride;

  float sums[C.thread_m][C.thread_n] = {};
  for (int64_t k0 = 0; k0 < p.k; k0 += C.block_k) {
    copy_panel<C, a_along_k, C.a_vector, C.block_m>(shared.a, a + k0 * p.a.col_stride,
                                                    a_along_k ? p.a.row_stride : p.a.col_stride,
                                                    p.k - k0, p.m - tile.row);
    copy_panel<C, b_along_k, C.b_vector, C.block_n>(shared.b, b + k0 * p.b.row_stride,
                                                    b_along_k ? p.b.col_stride : p.b.row_stride,
                                                    p.k - k0, p.n - tile.col);
    __syncthreads();  // the panels are complete
#pragma unroll
    for (int k = 0; k < C.block_k; ++k) {
      float x[C.thread_m], y[C.thread_n];
      load_groups(x, &shared.a[k][row], grid_m * kGroup);
      load_groups(y, &shared.b[k][col], grid_n * kGroup);
#pragma unroll
      for (int i = 0; i < C.thread_m; ++i) {
#pragma unroll
        for (int j = 0; j < C.thread_n; ++j) sums[i][j] += x[i] * y[j];
      }
    }
    __syncthreads();  // every thread has read them, the next step may overwrite
  }
  const Epilogue<T, Out, C> epilogue(p, tile.batch);
#pragma unroll
  for (int i = 0; i < C.thread_m; ++i) {
    const int64_t out_row = tile.row + row + i / kGroup * grid_m * kGroup + i % kGroup;
#pragma unroll
    for (int j = 0; j < C.thread_n; j += kGroup) {
      const float group[kGroup] = {sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]};
      epilogue.store(group, out_row, tile.col + col + j * grid_n);
    }
  }
}

}  // namespace tensorcraft::kernel::gemm

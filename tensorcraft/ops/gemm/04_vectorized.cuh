// SPDX-License-Identifier: Apache-2.0
#pragma once
// A copy moves 16 bytes, that of thread_tiled one element; to and from shared memory too.
//
// A multiply step of 8 x 8 outputs needs (8 + 8) / 4 = 4 shared loads of 16 bytes instead of 16,
// for 64 multiply-adds. For that the tile of A is transposed, with a thread's rows side by side,
// and rows of shared memory are padded by 16 bytes so that the transposing stores of a warp spread
// over the banks. A thread's outputs are groups of 4 x 4, a thread grid apart.
// It demands that A and B each have a unit stride; a_vector and b_vector elements must divide that
// extent, every other stride and the address. Vectors of 1 accept anything.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/gemm/parts/quads.cuh"

namespace tensorcraft::kernel::gemm {

template <Config C>
struct alignas(kVectorBytes) VectorizedShared {
  float a[C.block_k][C.block_m + kQuad], b[C.block_k][C.block_n + kQuad];
};

// Copies block_k x Size elements, `k_left` x `left` of them inside the matrix, to panel[k][i].
// AlongK: k is the index with stride 1, and a vector's elements go to different rows of the panel.
template <Config C, bool AlongK, int Vector, int Size, class T>
TC_DEVICE void copy_panel(float (&panel)[C.block_k][Size + kQuad], const T* from, int64_t stride,
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
    if constexpr (AlongK || Vector < kQuad) {
#pragma unroll
      for (int j = 0; j < Vector; ++j) panel[k + AlongK * j][i + !AlongK * j] = float(v[j]);
    } else {
#pragma unroll
      for (int j = 0; j < Vector; j += kQuad) {
        const Vec4<float> group = {float(v[j]), float(v[j + 1]), float(v[j + 2]), float(v[j + 3])};
        store_vector(&panel[k][i + j], group);
      }
    }
  }
}

struct Vectorized {
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    constexpr int grid_m = C.block_m / C.thread_m, grid_n = C.block_n / C.thread_n;
    constexpr bool a_along_k = C.a_layout == Layout::row_major;
    constexpr bool b_along_k = C.b_layout == Layout::column_major;
    static_assert(C.threads == grid_m * grid_n, "the threads form a grid over the tile");
    static_assert(C.thread_m % kQuad == 0 && C.thread_n % kQuad == 0);
    auto& shared = static_shared<VectorizedShared<C>>();
    const BlockTile tile = block_tile<C>(p);
    const int row = threadIdx.x / grid_n * kQuad, col = threadIdx.x % grid_n * kQuad;
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
        load_quads(x, &shared.a[k][row], grid_m * kQuad);
        load_quads(y, &shared.b[k][col], grid_n * kQuad);
        add_outer_product(sums, x, y);
      }
      __syncthreads();  // every thread has read them, the next step may overwrite
    }
    const Epilogue<T, Out, C> epilogue(p, tile.batch);
#pragma unroll
    for (int i = 0; i < C.thread_m; ++i) {
      const int64_t out_row = tile.row + row + i / kQuad * grid_m * kQuad + i % kQuad;
#pragma unroll
      for (int j = 0; j < C.thread_n; j += kQuad) {
        const float quad[kQuad] = {sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]};
        epilogue.store(quad, out_row, tile.col + col + j * grid_n);
      }
    }
  }
};

}  // namespace tensorcraft::kernel::gemm

// SPDX-License-Identifier: Apache-2.0
#pragma once
// A thread computes thread_m x thread_n outputs: it loads a column of its A and a row of its B into
// registers and multiplies every pair.
//
// block_tiled reads shared memory 1 + 1 / outputs times for each multiply-add; here it is
//   (thread_m + thread_n) / (thread_m thread_n) = 1/4 for 8 x 8,
// so shared memory no longer limits the rate. A thread's rows and columns are a thread grid apart:
// at one instant the warp reads neighbouring words of a row of B, and stores neighbours of D.
// It accepts every shape and stride, as block_tiled does.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/gemm/parts/epilogue.cuh"

namespace tensorcraft::kernel::gemm {

template <Config C>
struct ThreadTiledShared {
  float a[C.block_m][C.block_k], b[C.block_k][C.block_n];
};

// sums += A column x B row for each k of the tiles.
template <Config C>
TC_DEVICE void multiply_tiles(float (&sums)[C.thread_m][C.thread_n],
                              const ThreadTiledShared<C>& shared, int row, int col) {
  constexpr int grid_m = C.block_m / C.thread_m, grid_n = C.block_n / C.thread_n;
#pragma unroll
  for (int k = 0; k < C.block_k; ++k) {
    float a[C.thread_m], b[C.thread_n];
#pragma unroll
    for (int i = 0; i < C.thread_m; ++i) a[i] = shared.a[row + i * grid_m][k];
#pragma unroll
    for (int j = 0; j < C.thread_n; ++j) b[j] = shared.b[k][col + j * grid_n];
#pragma unroll
    for (int i = 0; i < C.thread_m; ++i) {
#pragma unroll
      for (int j = 0; j < C.thread_n; ++j) sums[i][j] += a[i] * b[j];
    }
  }
}

struct ThreadTiled {
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    constexpr int grid_m = C.block_m / C.thread_m, grid_n = C.block_n / C.thread_n;
    static_assert(C.threads == grid_m * grid_n, "the threads form a grid over the tile");
    auto& shared = static_shared<ThreadTiledShared<C>>();
    const BlockTile tile = block_tile<C>(p);
    const int row = threadIdx.x / grid_n, col = threadIdx.x % grid_n;
    const T* a = batch_entry<const T>(p, p.a, tile.batch) + tile.row * p.a.row_stride;
    const T* b = batch_entry<const T>(p, p.b, tile.batch) + tile.col * p.b.col_stride;

    float sums[C.thread_m][C.thread_n] = {};
    for (int64_t k0 = 0; k0 < p.k; k0 += C.block_k) {
      copy_tile<C, C.a_layout>(shared.a, a + k0 * p.a.col_stride, p.a, p.m - tile.row, p.k - k0);
      copy_tile<C, C.b_layout>(shared.b, b + k0 * p.b.row_stride, p.b, p.k - k0, p.n - tile.col);
      __syncthreads();  // the tiles are complete
      multiply_tiles<C>(sums, shared, row, col);
      __syncthreads();  // every thread has read them, the next step may overwrite
    }
    const Epilogue<T, Out, C> epilogue(p, tile.batch);
#pragma unroll
    for (int i = 0; i < C.thread_m; ++i) {
#pragma unroll
      for (int j = 0; j < C.thread_n; ++j) {
        const float sum[1] = {sums[i][j]};
        epilogue.store(sum, tile.row + row + i * grid_m, tile.col + col + j * grid_n);
      }
    }
  }
};

}  // namespace tensorcraft::kernel::gemm

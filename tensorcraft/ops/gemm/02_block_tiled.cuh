// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block first copies a tile of A and a tile of B to shared memory, then every thread reads its
// operands from there.
//
// One element of A now serves block_n outputs and one of B serves block_m, so the global traffic
// for each step of k falls from 2 block_m block_n elements to block_m + block_n: the intensity is
//   2 block_m block_n / ((block_m + block_n) sizeof(T)) = 8 flop/byte for float and 32 x 32.
// It accepts every shape and stride: the part of a tile outside its matrix is filled with zeros.
// The layouts in Config say which index of a tile neighbouring threads copy along.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/gemm/parts/epilogue.cuh"

namespace tensorcraft::kernel::gemm {

template <Config C>
struct BlockTiledShared {
  float a[C.block_m][C.block_k], b[C.block_k][C.block_n];
};

struct BlockTiled {
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    static_assert(C.threads % C.block_n == 0 && C.block_m * C.block_n % C.threads == 0);
    constexpr int row_step = C.threads / C.block_n;  // a thread's outputs are row_step rows apart
    constexpr int outputs = C.block_m / row_step;
    auto& shared = static_shared<BlockTiledShared<C>>();
    const BlockTile tile = block_tile<C>(p);
    const int row = threadIdx.x / C.block_n, col = threadIdx.x % C.block_n;
    const T* a = batch_entry<const T>(p, p.a, tile.batch) + tile.row * p.a.row_stride;
    const T* b = batch_entry<const T>(p, p.b, tile.batch) + tile.col * p.b.col_stride;

    float sums[outputs] = {};
    for (int64_t k0 = 0; k0 < p.k; k0 += C.block_k) {
      copy_tile<C, C.a_layout>(shared.a, a + k0 * p.a.col_stride, p.a, p.m - tile.row, p.k - k0);
      copy_tile<C, C.b_layout>(shared.b, b + k0 * p.b.row_stride, p.b, p.k - k0, p.n - tile.col);
      __syncthreads();  // the tiles are complete
      for (int k = 0; k < C.block_k; ++k) {
        for (int i = 0; i < outputs; ++i) {
          sums[i] += shared.a[row + i * row_step][k] * shared.b[k][col];
        }
      }
      __syncthreads();  // every thread has read them, the next step may overwrite
    }
    const Epilogue<T, Out, C> epilogue(p, tile.batch);
    for (int i = 0; i < outputs; ++i) {
      const float sum[1] = {sums[i]};
      epilogue.store(sum, tile.row + row + i * row_step, tile.col + col);
    }
  }
};

}  // namespace tensorcraft::kernel::gemm

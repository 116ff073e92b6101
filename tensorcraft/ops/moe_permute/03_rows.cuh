// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a thread reads 16 bytes of a token and writes them to all rows of the token, so x
// is read once and not k times:
//   bytes moved = (1 + k) / (2 k) of those of `naive`.
// Rows without a token are found by further blocks, which write zeros.
#include "tensorcraft/device/bits.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/moe_permute/params.h"

namespace tensorcraft::kernel::moe_permute {

// A row is whole units of 16 bytes.
struct Rows {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int N = kVectorSize<T>;
    T* const out = static_cast<T*>(p.out);
    const int64_t block = blockIdx.x;
    if (block < p.moving_blocks) {
      const int32_t token = int32_t(block) / p.pieces, piece = int32_t(block) - token * p.pieces;
      const int64_t col = (int64_t(piece) * C.threads + threadIdx.x) * N;
      if (col >= p.hidden) return;
      const auto unit = load_vector<N>(static_cast<const T*>(p.x) + token * p.x_strides[0] + col);
      for (int slot = 0; slot < p.sort.k; ++slot) {
        const int32_t row = row_of(p.sort, token, slot);
        if (row >= 0) store_vector(out + row * p.out_strides[0] + col, unit);
      }
      return;
    }
    const int32_t first = int32_t(block - p.moving_blocks) * kZeroRows;
    const int32_t own = first + int32_t(threadIdx.x) % kWarpSize;
    uint32_t empty = __ballot_sync(kFullWarp, own < p.sort.rows && source_of(p.sort, own) < 0);
    AlignedVector<T, N> zeros;
    for (int i = 0; i < N; ++i) zeros[i] = T(0);
    for (; empty != 0; empty &= empty - 1) {
      T* const row = out + (first + lowest_bit(empty)) * p.out_strides[0];
      for (int64_t col = int64_t(threadIdx.x) * N; col < p.hidden; col += int64_t(C.threads) * N)
        store_vector(row + col, zeros);
    }
  }
};

}  // namespace tensorcraft::kernel::moe_permute

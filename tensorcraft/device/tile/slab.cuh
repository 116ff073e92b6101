// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/tile/warp_sums.cuh"

// The way of a warp's sums to global memory: through shared memory, where they change from mma's
// layout to rows.
namespace tensorcraft {

// Shared memory of a warp for 16 rows of its sums. Padding by 8 floats keeps the 8-byte writes of
// mma's layout free of conflicts.
template <int kCols>
using Slab = AlignedVector<float, 4>[16][kCols / 4 + 2];

// Stores a warp's sums 16 rows at a time; 4 neighbours of a row are in one lane then. `epilogue`
// has store(const float (&)[4], row, col). kGated: store(left, right, row, col) of a row's halves.
template <bool kGated = false, class Epilogue, int kRows, int kCols>
TC_DEVICE void store_sums(const Epilogue& epilogue, Slab<kCols>& slab,
                          const WarpSums<kRows, kCols>& sums, int64_t row, int64_t col) {
  constexpr int lanes_per_row = kCols / (kGated ? 8 : 4), rows_per_pass = 32 / lanes_per_row;
  static_assert(32 % lanes_per_row == 0);
  const int lane = threadIdx.x % 32, from_row = lane / 4, from_col = lane % 4 * 2;
  const int group = lane % lanes_per_row;
#pragma unroll
  for (int i = 0; i < kRows / 16; ++i) {
    __syncwarp();  // the lanes have read what the last round wrote
#pragma unroll
    for (int j = 0; j < kCols / 8; ++j) {
      const float(&s)[4] = sums.at[i][j];
      store_vector(&slab[from_row][j * 2][0] + from_col, Vec2<float>{s[0], s[1]});
      store_vector(&slab[from_row + 8][j * 2][0] + from_col, Vec2<float>{s[2], s[3]});
    }
    __syncwarp();
#pragma unroll 1
    for (int r = lane / lanes_per_row; r < 16; r += rows_per_pass) {
      const int64_t to_row = row + i * 16 + r, to_col = col + group * 4;
      if constexpr (kGated)
        epilogue.store(slab[r][group].values, slab[r][group + lanes_per_row].values, to_row,
                       to_col);
      else
        epilogue.store(slab[r][group].values, to_row, to_col);
    }
  }
}

}  // namespace tensorcraft

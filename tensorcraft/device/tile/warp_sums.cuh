// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/tile/fragments.cuh"

namespace tensorcraft {

// A warp's kRows x kCols part of a product, as 16 x 8 blocks in mma's layout.
template <int kRows, int kCols>
struct WarpSums {
  static_assert(kRows % 16 == 0 && kCols % 16 == 0);
  float at[kRows / 16][kCols / 8][4];

  // Adds other sums, which are 0 then.
  TC_DEVICE void take(WarpSums& other) {
#pragma unroll
    for (int i = 0; i < kRows / 16; ++i) {
#pragma unroll
      for (int j = 0; j < kCols / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) at[i][j][e] += other.at[i][j][e];
      }
    }
    other = {};
  }
  template <class T>
  TC_DEVICE void add_product(Fragments<kRows, kCols>& f) {
    if constexpr (sizeof(T) == 4) {
      round_to_tf32(f.a);
      round_to_tf32(f.b);
    }
#pragma unroll
    for (int i = 0; i < kRows / 16; ++i) {
#pragma unroll
      for (int n = 0; n < kCols / 8; ++n) {
        // There and back, so that each product shares an operand with the one before it: the
        // register file is read less often, and large products are limited by power.
        const int j = i % 2 == 0 ? n : kCols / 8 - 1 - n;
        const uint32_t b[2] = {f.b[j / 2][j % 2 * 2], f.b[j / 2][j % 2 * 2 + 1]};
        multiply_add<T>(at[i][j], f.a[i], b);
      }
    }
  }
};

}  // namespace tensorcraft

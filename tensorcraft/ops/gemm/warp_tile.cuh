// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cvt.cuh"
#include "tensorcraft/device/ptx/ldmatrix.cuh"
#include "tensorcraft/device/ptx/mma.cuh"
#include "tensorcraft/ops/gemm/epilogue.cuh"

// What a warp with tensor cores does between shared memory and D. Operands are f16, bf16, or float,
// which is rounded to tf32. In 16-byte chunks all of them look alike: a row of an 8 x 8 matrix for
// ldmatrix is one chunk, and one instruction multiplies two chunks along k.
namespace tensorcraft::kernel::gemm {

template <class T>
inline constexpr int kChunk = kVectorBytes / int(sizeof(T));  // elements in 16 bytes
template <class T>
inline constexpr int kStep = 2 * kChunk<T>;  // of k, one instruction

// The 16 x kStep block of a tile at (i, k) as mma's operand A, or (k, column i) as two operands B.
// A tile has chunk(line, n), the n-th chunk of a line; its lines run along k, or across it where
// `transposed`. kSecondAlongK: the second 8 x 8 matrix is the neighbour along k (B), else along
// rows (A).
template <class T, bool transposed, bool kSecondAlongK, class Tile>
TC_DEVICE void load_fragments(uint32_t (&to)[4], const Tile& tile, int i, int k) {
  const int lane = threadIdx.x % 32;
  const auto along_i = [](int matrix) { return kSecondAlongK ? matrix / 2 : matrix % 2; };
  const auto along_k = [](int matrix) { return kSecondAlongK ? matrix % 2 : matrix / 2; };
  if constexpr (!transposed) {
    const int line = i + along_i(lane / 8) * 8 + lane % 8;
    ptx::ldmatrix_x4(to, tile.chunk(line, k / kChunk<T> + along_k(lane / 8)));
  } else if constexpr (sizeof(T) == 2) {
    const int line = k + along_k(lane / 8) * 8 + lane % 8;
    ptx::ldmatrix_x4_trans(to, tile.chunk(line, i / 8 + along_i(lane / 8)));
  } else {  // ldmatrix transposes 16-bit elements only
#pragma unroll
    for (int matrix = 0; matrix < 4; ++matrix) {
      const int line = k + along_k(matrix) * 4 + lane % 4, at = lane / 4 % 4;
      const int chunk = i / 4 + along_i(matrix) * 2 + lane / 16;
      to[matrix] = bit_cast<uint32_t>(tile.chunk(line, chunk)[at]);
    }
  }
}

template <int N>
TC_DEVICE void round_to_tf32(uint32_t (&fragments)[N][4]) {
#pragma unroll
  for (auto& fragment : fragments) {
#pragma unroll
    for (uint32_t& x : fragment) x = ptx::cvt_rna_tf32_f32(bit_cast<float>(x));
  }
}

// The operands of one step along k of a warp. Floats are rounded when they are used: rounding
// waits for the load.
template <Config C>
struct Fragments {
  uint32_t a[C.warp_m / 16][4], b[C.warp_n / 16][4];

  template <class T, class A, class B>
  TC_DEVICE void load(const A& a_tile, const B& b_tile, int row, int col, int k) {
#pragma unroll
    for (int i = 0; i < C.warp_m / 16; ++i) {
      load_fragments<T, C.a_layout == Layout::column_major, false>(a[i], a_tile, row + i * 16, k);
    }
#pragma unroll
    for (int j = 0; j < C.warp_n / 16; ++j) {
      load_fragments<T, C.b_layout == Layout::row_major, true>(b[j], b_tile, col + j * 16, k);
    }
  }
};

template <class T>
TC_DEVICE void multiply_add(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
template <>
TC_DEVICE void multiply_add<f16>(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  ptx::mma_m16n8k16_f32_f16_f16_f32(sums, a, b, sums);
}
template <>
TC_DEVICE void multiply_add<bf16>(float (&sums)[4], const uint32_t (&a)[4],
                                  const uint32_t (&b)[2]) {
  ptx::mma_m16n8k16_f32_bf16_bf16_f32(sums, a, b, sums);
}
template <>
TC_DEVICE void multiply_add<float>(float (&sums)[4], const uint32_t (&a)[4],
                                   const uint32_t (&b)[2]) {
  ptx::mma_m16n8k8_f32_tf32_tf32_f32(sums, a, b, sums);
}

// A warp's part of D, as 16 x 8 blocks in mma's layout.
template <Config C>
struct WarpSums {
  static_assert(C.warp_m % 16 == 0 && C.warp_n % 16 == 0);
  float at[C.warp_m / 16][C.warp_n / 8][4];

  template <class T>
  TC_DEVICE void add_product(Fragments<C>& f) {
    if constexpr (sizeof(T) == 4) {
      round_to_tf32(f.a);
      round_to_tf32(f.b);
    }
#pragma unroll
    for (int i = 0; i < C.warp_m / 16; ++i) {
#pragma unroll
      for (int jj = 0; jj < C.warp_n / 8; ++jj) {
        // Back and forth: the next row begins with the operand that this one ends with.
        const int j = i % 2 ? C.warp_n / 8 - 1 - jj : jj;
        const uint32_t b[2] = {f.b[j / 2][j % 2 * 2], f.b[j / 2][j % 2 * 2 + 1]};
        multiply_add<T>(at[i][j], f.a[i], b);
      }
    }
  }
};

// Shared memory of a warp for 16 rows of its sums.
template <Config C>
using Slab = AlignedVector<float, 4>[16][C.warp_n / 4 + 2];

// Stores a warp's sums 16 rows at a time. In the slab they change from mma's layout to rows, so
// that a row's neighbours lie in one lane; padding by 8 floats keeps the 8-byte writes free of
// conflicts.
template <class T, class Out, Config C>
TC_DEVICE void store_sums(const Epilogue<T, Out, C>& epilogue, Slab<C>& slab,
                          const WarpSums<C>& sums, int64_t row, int64_t col) {
  constexpr int lanes_per_row = C.warp_n / 4, rows_per_pass = 32 / lanes_per_row;
  static_assert(32 % lanes_per_row == 0);
  const int lane = threadIdx.x % 32, from_row = lane / 4, from_col = lane % 4 * 2;
  const int group = lane % lanes_per_row;
#pragma unroll
  for (int i = 0; i < C.warp_m / 16; ++i) {
    __syncwarp();  // the lanes have read what the last round wrote
#pragma unroll
    for (int j = 0; j < C.warp_n / 8; ++j) {
      const float(&s)[4] = sums.at[i][j];
      store_vector(&slab[from_row][j * 2][0] + from_col, Vec2<float>{s[0], s[1]});
      store_vector(&slab[from_row + 8][j * 2][0] + from_col, Vec2<float>{s[2], s[3]});
    }
    __syncwarp();
#pragma unroll 1
    for (int r = lane / lanes_per_row; r < 16; r += rows_per_pass) {
      epilogue.store(slab[r][group].values, row + i * 16 + r, col + group * 4);
    }
  }
}

}  // namespace tensorcraft::kernel::gemm

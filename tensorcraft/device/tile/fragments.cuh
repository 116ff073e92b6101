// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/ldmatrix.cuh"
#include "tensorcraft/device/tf32.cuh"
#include "tensorcraft/device/tile/multiply_add.cuh"

// From a tile in shared memory to the registers that mma reads. A row of an 8 x 8 matrix for
// ldmatrix is one chunk of 16 bytes. A tile has chunk(line, n), the n-th chunk of a line; its lines
// run along k, or across it.
namespace tensorcraft {

// The 16 x kMmaDepth block of a tile at (i, k) as mma's operand A, or (k, column i) as two operands
// B. kSecondAlongK: the second 8 x 8 matrix is the neighbour along k (B), else along rows (A).
template <class T, bool kAlongK, bool kSecondAlongK, class Tile>
TC_DEVICE void load_fragments(uint32_t (&to)[4], const Tile& tile, int i, int k) {
  const int lane = threadIdx.x % 32;
  const auto along_i = [](int matrix) { return kSecondAlongK ? matrix / 2 : matrix % 2; };
  const auto along_k = [](int matrix) { return kSecondAlongK ? matrix % 2 : matrix / 2; };
  if constexpr (kAlongK) {
    const int line = i + along_i(lane / 8) * 8 + lane % 8;
    ptx::ldmatrix_x4(to, tile.chunk(line, k / kVectorSize<T> + along_k(lane / 8)));
  } else if constexpr (sizeof(T) == 2) {
    const int line = k + along_k(lane / 8) * 8 + lane % 8;
    ptx::ldmatrix_x4_trans(to, tile.chunk(line, i / 8 + along_i(lane / 8)));
  } else {  // ldmatrix transposes 16-bit elements only
    static_assert(sizeof(T) == 4, "8-bit elements lie along k");
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
    for (uint32_t& x : fragment) x = to_tf32(bit_cast<float>(x));
  }
}

// The operands of one step along k of a warp's kRows x kCols results. Floats are rounded when they
// are used: rounding waits for the load.
template <int kRows, int kCols>
struct Fragments {
  uint32_t a[kRows / 16][4], b[kCols / 16][4];

  // Stage: the tiles that hold them, as OperandTiles does. The right half of the columns is
  // `half_jump` further.
  template <class Stage>
  TC_DEVICE void load(const Stage& stage, int row, int col, int k, int half_jump = 0) {
    using T = typename Stage::Element;
#pragma unroll
    for (int i = 0; i < kRows / 16; ++i) {
      load_fragments<T, Stage::a_along_k, false>(a[i], stage.a, row + i * 16, k);
    }
#pragma unroll
    for (int j = 0; j < kCols / 16; ++j) {
      const int i = col + j * 16 + (j >= kCols / 32 ? half_jump : 0);
      load_fragments<T, Stage::b_along_k, true>(b[j], stage.b, i, k);
    }
  }
};

}  // namespace tensorcraft

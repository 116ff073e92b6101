// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/device/ptx/wgmma.cuh"
#include "tensorcraft/device/tile/boxed_tile.cuh"

// A warpgroup's part of a product, made by wgmma from the tiles that the copy engine brings.
namespace tensorcraft {

template <class T>
inline constexpr WgmmaType kWgmmaType = WgmmaType::tf32;
template <>
inline constexpr WgmmaType kWgmmaType<f16> = WgmmaType::f16;
template <>
inline constexpr WgmmaType kWgmmaType<bf16> = WgmmaType::bf16;
template <>
inline constexpr WgmmaType kWgmmaType<e4m3> = WgmmaType::e4m3;
template <>
inline constexpr WgmmaType kWgmmaType<e5m2> = WgmmaType::e5m2;
template <>
inline constexpr WgmmaType kWgmmaType<int8_t> = WgmmaType::s8;

// How wgmma finds a BoxedTile of T, whose lines are along k or along m or n.
template <class T, class Tile, bool kAlongK>
struct WgmmaTile {
  // Elements of a line of the swizzle, and the bytes of all lines of a box.
  static constexpr int span = kBoxChunks * kVectorSize<T>;
  static constexpr uint32_t line_bytes = kBoxChunks * kVectorBytes;
  static constexpr uint32_t box_bytes = uint32_t(sizeof(Tile) / Tile::length * span);

  TC_DEVICE static uint64_t descriptor(const Tile& tile) {
    return wgmma_descriptor({.address = ptx::cvta_to_shared(&tile),
                             .leading = kAlongK ? 16 : box_bytes,
                             .stride = 8 * line_bytes,
                             .swizzle = Swizzle::bytes_128});
  }
  // The addend of a descriptor for rows or columns from number i on and the step'th wgmma along k:
  // i is a multiple of 8, or of a span if lines are not along k.
  TC_DEVICE static constexpr uint64_t offset(int i, int step) {
    constexpr int steps = line_bytes / 32;  // of a box along k
    const uint32_t bytes =
        kAlongK ? uint32_t(i) * line_bytes + uint32_t(step / steps) * box_bytes +
                      uint32_t(step % steps) * 32
                : uint32_t(i / span) * box_bytes + uint32_t(step) * (32 / sizeof(T)) * line_bytes;
    return bytes / 16;
  }
};

// wgmma reads elements of 4 bytes from shared memory along k only; those of A may come in registers
// instead.
template <class T, bool kAlongK>
inline constexpr bool kARegisters = sizeof(T) == 4 && !kAlongK;

// Which of 64 rows a thread has the sums of: of its row lane / 4 in the warp if `half` is 0, of the
// row 8 below if it is 1. A in registers has rows spread so that the four rows of a 16-byte unit
// and those four units on, for four k, are in different banks of a BoxedTile along m.
template <bool kSpread>
TC_DEVICE int sums_row(int half) {
  const int row = threadIdx.x % 32 / 4, warp = threadIdx.x / 32 % 4;
  if constexpr (kSpread)
    return warp / 2 * 32 + warp % 2 * 8 + half * 4 + row / 4 * 16 + row % 4;
  else
    return warp * 16 + half * 8 + row;
}

// A's operands of one wgmma for rows `row` on of a tile along m.
template <class Tile>
TC_DEVICE void load_spread_rows(uint32_t (&a)[4], const Tile& tile, int row, int step) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&tile);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int at = row + sums_row<true>(i % 2), k = step * 8 + i / 2 * 4 + int(threadIdx.x) % 4;
    a[i] = *reinterpret_cast<const uint32_t*>(bytes + Tile::place(k, at / 4) + at % 4 * 4);
  }
}

// The sums of kRows x kCols outputs in wgmma's layout (device/ptx/wgmma.cuh): for each 64 rows the
// columns in one piece, or in two equal ones if they are more than kWidest, which is all that one
// instruction can have, or less if threads have few registers. Sum: float, or int32_t of integers.
template <int kRows, int kCols, class Sum = float, int kWidest = 256>
struct WarpgroupSums {
  static constexpr int pieces = kCols > kWidest ? 2 : 1, width = kCols / pieces;
  static_assert(kRows % 64 == 0 && kCols % (8 * pieces) == 0);
  Sum at[kRows / 64][pieces][width / 2];

  // Starts adding the product of a stage: its rows of A from `row` on by all of B. Without
  // `accumulate` the sums begin anew. wait() comes before they are read.
  template <class T, class Stage>
  TC_DEVICE void add_product(const Stage& stage, int row, bool accumulate) {
    add_tiles<T, Stage::shape.k, Stage::a_along_k, Stage::b_along_k>(stage.a, row, stage.b,
                                                                     accumulate);
  }
  // Multiplies two tiles, kDepth of them along k. `b_offset`, `a_offset`: what WgmmaTile adds for
  // the first column and step of B, and the first step of A.
  template <class T, int kDepth, bool kAAlongK, bool kBAlongK, class TileA, class TileB>
  TC_DEVICE void add_tiles(const TileA& a_tile, int row, const TileB& b_tile, bool accumulate,
                           uint64_t b_offset = 0, uint64_t a_offset = 0) {
    using A = WgmmaTile<T, TileA, kAAlongK>;
    using B = WgmmaTile<T, TileB, kBAlongK>;
    constexpr Wgmma op{.n = width,
                       .a = kWgmmaType<T>,
                       .b = kWgmmaType<T>,
                       .a_major = kAAlongK ? Major::k : Major::mn,
                       .b_major = kBAlongK ? Major::k : Major::mn};
    constexpr int steps = kDepth / wgmma_k(op);
    static_assert(kBAlongK || pieces == 1 || width % B::span == 0);
    const uint64_t a = A::descriptor(a_tile) + A::offset(row, 0) + a_offset;
    const uint64_t b = B::descriptor(b_tile) + b_offset;
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < steps; ++k) {
#pragma unroll
      for (int i = 0; i < kRows / 64; ++i) {
#pragma unroll
        for (int j = 0; j < pieces; ++j)
          ptx::wgmma_mma_async<op>(at[i][j], a + A::offset(i * 64, k), b + B::offset(j * width, k),
                                   accumulate || k > 0);
      }
    }
    ptx::wgmma_commit_group();
  }
  // Multiplies with A in registers, which are in use until wait<0>().
  template <class T, class Stage>
  TC_DEVICE void add_product_of_registers(const Stage& stage, int row, bool accumulate) {
    static_assert(!Stage::a_along_k && Stage::b_along_k);
    constexpr int steps = Stage::shape.k / wgmma_k({.a = kWgmmaType<T>, .b = kWgmmaType<T>});
    uint32_t a[steps][kRows / 64][4];
#pragma unroll
    for (int k = 0; k < steps; ++k) {
#pragma unroll
      for (int i = 0; i < kRows / 64; ++i) load_spread_rows(a[k][i], stage.a, row + i * 64, k);
    }
    add_registers<T, true>(a, stage.b, accumulate);
  }
  // Multiplies A's operands as they are, for each step along k and each 64 rows.
  template <class T, bool kBAlongK, int kSteps, class TileB>
  TC_DEVICE void add_registers(const uint32_t (&a)[kSteps][kRows / 64][4], const TileB& b_tile,
                               bool accumulate, uint64_t b_offset = 0) {
    using B = WgmmaTile<T, TileB, kBAlongK>;
    constexpr Wgmma op{.n = width,
                       .a = kWgmmaType<T>,
                       .b = kWgmmaType<T>,
                       .b_major = kBAlongK ? Major::k : Major::mn};
    static_assert(kBAlongK || pieces == 1 || width % B::span == 0);
    const uint64_t b = B::descriptor(b_tile) + b_offset;
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
#pragma unroll
      for (int i = 0; i < kRows / 64; ++i) {
#pragma unroll
        for (int j = 0; j < pieces; ++j)
          ptx::wgmma_mma_async<op>(at[i][j], a[k][i], b + B::offset(j * width, k),
                                   accumulate || k > 0);
      }
    }
    ptx::wgmma_commit_group();
  }
  // Returns when all products but the last kPending are in the sums.
  template <int kPending>
  TC_DEVICE static void wait() {
    ptx::wgmma_wait_group<kPending>();
  }
  // Waits for all but the last kPending; unless theirs are among those, the sums may be read then.
  template <int kPending = 0>
  TC_DEVICE void land() {
    ptx::wgmma_wait_group<kPending>();
#pragma unroll
    for (int i = 0; i < kRows / 64; ++i) {
#pragma unroll
      for (int j = 0; j < pieces; ++j) ptx::wgmma_landed(at[i][j]);
    }
  }
  // The sums of no product.
  TC_DEVICE void clear() {
#pragma unroll
    for (int i = 0; i < kRows / 64; ++i) {
#pragma unroll
      for (int j = 0; j < pieces; ++j) {
#pragma unroll
        for (int n = 0; n < width / 2; ++n) at[i][j][n] = 0;
      }
    }
  }

  // A thread's sums of rows 64 i and columns 8 n on, as the bits of floats: two neighbours of its
  // row sums_row(half).
  TC_DEVICE void pair(float (&x)[2], int i, int n, int half) const {
    x[0] = bit_cast<float>(element(i, n, half, 0));
    x[1] = bit_cast<float>(element(i, n, half, 1));
  }
  // Number c of a thread's sums of the first 64 rows.
  TC_DEVICE const Sum& of_first_rows(int c) const {
    return at[0][c / (width / 2)][c % (width / 2)];
  }
  TC_DEVICE Sum& of_first_rows(int c) { return at[0][c / (width / 2)][c % (width / 2)]; }
  // One of the two.
  TC_DEVICE const Sum& element(int i, int n, int half, int e) const {
    return at[i][n * 8 / width][n % (width / 8) * 4 + half * 2 + e];
  }
  TC_DEVICE Sum& element(int i, int n, int half, int e) {
    return at[i][n * 8 / width][n % (width / 8) * 4 + half * 2 + e];
  }
};

}  // namespace tensorcraft

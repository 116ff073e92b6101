// SPDX-License-Identifier: Apache-2.0
#pragma once
// Multiplies 16 x 16 by 16 x 8 with one instruction of a warp, mma.sync, which keeps 2048
// multiply-adds of 16-bit operands busy where a warp of vectorized has 32.
//
// A warp's 64 x 64 part reads 2 x 64 x 16 elements of shared memory for 64 x 64 x 16 products:
//   2 x 2048 bytes / 128 bytes per clock = 32 clocks for 32 instructions, through ldmatrix.
// Rows are padded by 16 bytes, an odd number of 16-byte units, so its 8 rows meet 8 bank groups.
// The next tiles are on their way into registers while this step multiplies: two stages.
// It demands 16-bit A and B with a unit stride each, and vectors as in vectorized. Sums are float.
#include "tensorcraft/device/ptx/ldmatrix.cuh"
#include "tensorcraft/device/ptx/mma.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/gemm/epilogue.cuh"

namespace tensorcraft::kernel::gemm {

inline constexpr int kChunk = 8;  // 16-bit elements in 16 bytes: one row of an 8 x 8 matrix

// An operand's tile keeps the order of global memory: `Lines` lines along the unit stride.
template <class T, int Lines, int Length>
struct alignas(kVectorBytes) OperandTile {
  static constexpr int lines = Lines, length = Length;
  T at[Lines][Length + kChunk];
};

// Two stages of both operands; after the last step each warp has a slab for its sums instead.
template <class T, Config C>
struct TensorCoreShared {
  static constexpr bool a_along_k = C.a_layout == Layout::row_major;
  static constexpr bool b_along_k = C.b_layout == Layout::column_major;
  using A = OperandTile<T, a_along_k ? C.block_m : C.block_k, a_along_k ? C.block_k : C.block_m>;
  using B = OperandTile<T, b_along_k ? C.block_n : C.block_k, b_along_k ? C.block_k : C.block_n>;
  struct Stage {
    A a;
    B b;
  };
  using Slab = AlignedVector<float, 4>[16][C.warp_n / 4 + 2];
  union {
    Stage stages[2];
    Slab slabs[C.threads / 32];
  };
};

// A thread's share of one operand: chunks of 16 bytes from global memory through registers to
// shared. They stay raw words, for touching an element would wait for its load.
template <class T, class Tile, int Threads, int Vector>
struct Loader {
  static constexpr int per_line = Tile::length / kChunk;
  static constexpr int line_step = Threads / per_line;  // from one chunk of a thread to its next
  static constexpr int count = Tile::lines / line_step;
  static_assert(Threads % per_line == 0 && count * line_step == Tile::lines);

  const T* source;  // of the thread's first chunk
  int64_t stride;
  int line, start;  // where that chunk lies in the tile
  AlignedVector<uint32_t, kChunk / 2> chunks[count];

  TC_DEVICE Loader(const T* from, int64_t line_stride)
      : stride(line_stride), line(threadIdx.x / per_line), start(threadIdx.x % per_line * kChunk) {
    source = from + line * stride + start;
  }

  // Reads the tile, of which `lines` x `length` lie inside the matrix; the rest is 0.
  TC_DEVICE void fetch(int lines, int length) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const T* from = source + i * line_step * stride;
      chunks[i] = {};
#pragma unroll
      for (int j = 0; j < kChunk; j += Vector) {
        if (line + i * line_step >= lines || start + j >= length) continue;
        if constexpr (Vector == 1) {
          chunks[i][j / 2] |= uint32_t(from[j].bits) << (j % 2 * 16);
        } else {
          const auto part = load_vector<Vector / 2>(reinterpret_cast<const uint32_t*>(from + j));
#pragma unroll
          for (int e = 0; e < Vector / 2; ++e) chunks[i][j / 2 + e] = part[e];
        }
      }
    }
  }

  TC_DEVICE void store(Tile& tile) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      store_vector(reinterpret_cast<uint32_t*>(&tile.at[line + i * line_step][start]), chunks[i]);
    }
  }
};

// The 16 x 16 block of a tile at (row, k) as mma's operand A, or (k, column) as two operands B.
// Each lane names one row of the four 8 x 8 matrices; `transposed` where the tile's lines run
// across k. kSecondAlongK: the second matrix is the neighbour along k (B), else along rows (A).
template <bool transposed, bool kSecondAlongK, class Tile>
TC_DEVICE void load_fragments(uint32_t (&to)[4], const Tile& tile, int i, int k) {
  const int lane = threadIdx.x % 32, matrix = lane / 8;
  const int second = matrix % 2 * 8, third = matrix / 2 * 8;
  i += kSecondAlongK ? third : second;
  k += kSecondAlongK ? second : third;
  if constexpr (transposed) {
    ptx::ldmatrix_x4_trans(to, &tile.at[k + lane % 8][i]);
  } else {
    ptx::ldmatrix_x4(to, &tile.at[i + lane % 8][k]);
  }
}

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

// One step along k of a warp: all its 16 x 8 blocks of D, from one stage of shared memory.
template <class T, Config C>
TC_DEVICE void multiply_stage(float (&sums)[C.warp_m / 16][C.warp_n / 8][4],
                              const typename TensorCoreShared<T, C>::Stage& stage, int row,
                              int col) {
  constexpr bool a_transposed = !TensorCoreShared<T, C>::a_along_k;
  constexpr bool b_transposed = !TensorCoreShared<T, C>::b_along_k;
#pragma unroll
  for (int k = 0; k < C.block_k; k += 16) {
    uint32_t a[C.warp_m / 16][4], b[C.warp_n / 8][2];
#pragma unroll
    for (int i = 0; i < C.warp_m / 16; ++i) {
      load_fragments<a_transposed, false>(a[i], stage.a, row + i * 16, k);
    }
#pragma unroll
    for (int j = 0; j < C.warp_n / 8; j += 2) {
      uint32_t pair[4];
      load_fragments<b_transposed, true>(pair, stage.b, col + j * 8, k);
      b[j][0] = pair[0], b[j][1] = pair[1];
      b[j + 1][0] = pair[2], b[j + 1][1] = pair[3];
    }
#pragma unroll
    for (int i = 0; i < C.warp_m / 16; ++i) {
#pragma unroll
      for (int j = 0; j < C.warp_n / 8; ++j) multiply_add<T>(sums[i][j], a[i], b[j]);
    }
  }
}

// Stores a warp's sums 16 rows at a time. In the slab they change from mma's layout to rows, so
// that a row's neighbours lie in one lane; padding by 8 floats keeps the 8-byte writes free of
// conflicts.
template <class T, class Out, Config C>
TC_DEVICE void store_sums(const Epilogue<T, Out, C>& epilogue,
                          typename TensorCoreShared<T, C>::Slab& slab,
                          const float (&sums)[C.warp_m / 16][C.warp_n / 8][4], int64_t row,
                          int64_t col) {
  constexpr int lanes_per_row = C.warp_n / 4, rows_per_pass = 32 / lanes_per_row;
  static_assert(32 % lanes_per_row == 0);
  const int lane = threadIdx.x % 32, from_row = lane / 4, from_col = lane % 4 * 2;
  const int group = lane % lanes_per_row;
#pragma unroll
  for (int i = 0; i < C.warp_m / 16; ++i) {
    __syncwarp();  // the lanes have read what the last round wrote
#pragma unroll
    for (int j = 0; j < C.warp_n / 8; ++j) {
      const float(&s)[4] = sums[i][j];
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

template <class T, class Out, Config C>
TC_DEVICE void tensor_core(const Params& p) {
  using Shared = TensorCoreShared<T, C>;
  constexpr int warps_n = C.block_n / C.warp_n;
  static_assert(C.threads == C.block_m / C.warp_m * warps_n * 32, "the warps cover the tile");
  static_assert(sizeof(Shared) == tensor_core_shared_bytes(C));
  static_assert(C.warp_m % 16 == 0 && C.warp_n % 16 == 0 && C.block_k % 16 == 0);
  auto& shared = dynamic_shared<Shared>();
  const Tile tile = block_tile<C>(p);
  const int warp = threadIdx.x / 32;
  const int row = warp / warps_n * C.warp_m, col = warp % warps_n * C.warp_n;
  const int rows = min_of(p.m - tile.row, C.block_m);
  const int cols = min_of(p.n - tile.col, C.block_n);

  Loader<T, typename Shared::A, C.threads, C.a_vector> a(
      batch_entry<const T>(p, p.a, tile.batch) + tile.row * p.a.row_stride,
      Shared::a_along_k ? p.a.row_stride : p.a.col_stride);
  Loader<T, typename Shared::B, C.threads, C.b_vector> b(
      batch_entry<const T>(p, p.b, tile.batch) + tile.col * p.b.col_stride,
      Shared::b_along_k ? p.b.col_stride : p.b.row_stride);
  // Fetches step k of both and moves on to the next.
  const auto fetch = [&](int64_t k) {
    const int left = min_of(p.k - k, C.block_k);
    a.fetch(Shared::a_along_k ? rows : left, Shared::a_along_k ? left : rows);
    b.fetch(Shared::b_along_k ? cols : left, Shared::b_along_k ? left : cols);
    a.source += C.block_k * p.a.col_stride;
    b.source += C.block_k * p.b.row_stride;
  };
  float sums[C.warp_m / 16][C.warp_n / 8][4] = {};
  fetch(0);
  int stage = 0;
  for (int64_t k = 0; k < p.k; k += C.block_k, stage ^= 1) {
    a.store(shared.stages[stage].a);
    b.store(shared.stages[stage].b);
    // The stage is complete. One barrier is enough: the other stage, which the next step
    // overwrites, was last read before this barrier.
    __syncthreads();
    if (k + C.block_k < p.k) fetch(k + C.block_k);
    multiply_stage<T, C>(sums, shared.stages[stage], row, col);
  }
  __syncthreads();  // every warp has read the last stage
  store_sums(Epilogue<T, Out, C>(p, tile.batch), shared.slabs[warp], sums, tile.row + row,
             tile.col + col);
}

}  // namespace tensorcraft::kernel::gemm

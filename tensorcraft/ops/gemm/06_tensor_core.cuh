// SPDX-License-Identifier: Apache-2.0
#pragma once
// Multiplies 16 x 16 by 16 x 8 with one instruction of a warp, mma.sync: 2048 multiply-adds of
// 16-bit operands, and one instruction of vectorized does 32.
//
// A warp's 64 x 64 part reads 2 x 64 x 16 elements of shared memory for 64 x 64 x 16 products:
//   2 x 2048 bytes / 128 bytes per clock = 32 clocks for 32 instructions, through ldmatrix.
// Rows are padded by 16 bytes, an odd number of 16-byte units, so its 8 rows meet 8 bank groups.
// The next tiles are on their way into registers while this step multiplies: two stages.
// It demands a unit stride in A and in B, and vectors as in vectorized. Sums are float; float
// operands are rounded to tf32, which the caller must have allowed.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/gemm/parts/stages.cuh"

namespace tensorcraft::kernel::gemm {

// An operand's tile keeps the order of global memory: `Lines` lines along the unit stride.
template <class T, int Lines, int Length>
struct alignas(kVectorBytes) PaddedTile {
  static constexpr int lines = Lines, length = Length;
  T at[Lines][Length + kVectorSize<T>];

  TC_DEVICE const T* chunk(int line, int n) const { return &at[line][n * kVectorSize<T>]; }
};

template <class T, Config C>
using TensorCoreShared = StagesOrSlabs<PaddedTile, T, C, 2>;

// A thread's share of one operand: chunks of 16 bytes from global memory through registers to
// shared. They stay raw words, for touching an element would wait for its load.
template <class T, class Tile, int Threads, int Vector, class Order = InOrder, bool kAcross = false>
struct Loader {
  static constexpr int per_line = Tile::length / kVectorSize<T>;
  static constexpr int line_step = Threads / per_line;  // from one chunk of a thread to its next
  static constexpr int count = Tile::lines / line_step;
  static_assert(Threads % per_line == 0 && count * line_step == Tile::lines);
  static_assert(kAcross || !Order::is_second(line_step - 1));

  const T* source;  // of the thread's first chunk
  int64_t stride, jump;
  int line, start;  // that chunk's place in the tile
  int along;        // and along a line of the matrix
  Vec4<uint32_t> chunks[count];

  // `half_jump`: elements from a place of the first half to that of the second.
  TC_DEVICE Loader(const T* from, int64_t line_stride, int64_t half_jump = 0)
      : stride(line_stride),
        jump(half_jump),
        line(threadIdx.x / per_line),
        start(threadIdx.x % per_line * kVectorSize<T>),
        along(kAcross ? Order::place(start) : start) {
    source = from + line * stride + along;
    if (kAcross && Order::is_second(start)) source += half_jump;
  }

  // Reads the tile, of which `lines` x `length` are inside the matrix; the rest is 0.
  TC_DEVICE void fetch(int lines, int length) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      constexpr auto place = [](int at) { return kAcross ? at : Order::place(at); };
      const T* from = source + place(i * line_step) * stride;
      if (!kAcross && Order::is_second(i * line_step)) from += jump;
      const int left = line + place(i * line_step) < lines ? length - along : 0;
      if constexpr (Vector * sizeof(T) < 4) {
        fetch_elements(chunks[i], from, left);
      } else {
        constexpr int words = Vector * int(sizeof(T)) / 4;
        chunks[i] = {};
#pragma unroll
        for (int j = 0; j < kVectorSize<T>; j += Vector) {
          if (j >= left) continue;
          const auto part = load_vector<words>(reinterpret_cast<const uint32_t*>(from + j));
#pragma unroll
          for (int e = 0; e < words; ++e) chunks[i][j / Vector * words + e] = part[e];
        }
      }
    }
  }

  // One 16-bit element at a time. All of them are on their way before the first is packed.
  TC_DEVICE static void fetch_elements(Vec4<uint32_t>& chunk, const T* from, int left) {
    uint32_t elements[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) elements[j] = j < left ? from[j].bits : 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) chunk[j] = elements[2 * j] | elements[2 * j + 1] << 16;
  }

  TC_DEVICE void store(Tile& tile) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      store_vector(reinterpret_cast<uint32_t*>(&tile.at[line + i * line_step][start]), chunks[i]);
    }
  }
};

struct TensorCore {
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    using Shared = TensorCoreShared<T, C>;
    using Stage = typename Shared::Stage;
    static_assert(sizeof(Shared) == tensor_core_shared_bytes(C, sizeof(T)));
    static_assert(C.block_k % kMmaDepth<T> == 0);
    auto& shared = dynamic_shared<Shared>();
    const Tile<C> tile = block_tile<C>(p);
    if (is_none(tile)) return;
    const WarpPart<C> part;
    const int rows = min_of(row_end(p, tile) - tile.row, C.block_m);
    const int cols = min_of(p.n - tile.col, tile_columns(C));
    const int64_t begin = k_begin(tile), end = k_end(p, tile);

    Loader<T, typename Stage::A, C.threads, C.a_vector> a(
        a_of_tile<const T>(p, tile), Stage::a_along_k ? p.a.row_stride : p.a.col_stride);
    Loader<T, typename Stage::B, C.threads, C.b_vector, ColumnOrder<C>, !Stage::b_along_k> b(
        b_of_tile<const T>(p, tile), Stage::b_along_k ? p.b.col_stride : p.b.row_stride,
        half_jump<C>(p));
    // Fetches step k of both and moves on to the next.
    const auto fetch = [&](int64_t k) {
      const int left = min_of(end - k, C.block_k);
      a.fetch(Stage::a_along_k ? rows : left, Stage::a_along_k ? left : rows);
      b.fetch(Stage::b_along_k ? cols : left, Stage::b_along_k ? left : cols);
      a.source += C.block_k * p.a.col_stride;
      b.source += C.block_k * p.b.row_stride;
    };
    WarpSums<C.warp_m, C.warp_n> sums = {};
    fetch(begin);
    int stage = 0;
    for (int64_t k0 = begin; k0 < end; k0 += C.block_k, stage ^= 1) {
      a.store(shared.stages[stage].a);
      b.store(shared.stages[stage].b);
      // The stage is complete. One barrier is enough: the other stage, which the next step
      // overwrites, was last read before this barrier.
      __syncthreads();
      if (k0 + C.block_k < end) fetch(k0 + C.block_k);
#pragma unroll
      for (int k = 0; k < C.block_k; k += kMmaDepth<T>) {
        Fragments<C.warp_m, C.warp_n> fragments;
        fragments.load(shared.stages[stage], part.row, part.col, k, part.half_jump);
        sums.template add_product<T>(fragments);
      }
    }
    __syncthreads();  // every warp has read the last stage
    store_sums<C.gated != 0>(Epilogue<T, Out, C>(p, tile), shared.slabs[part.warp], sums,
                             tile.row + part.row, tile.col + part.col);
  }
};

// tensor_core by the name for float operands, which says that they are rounded.
struct TensorCoreTf32 {
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    TensorCore::run<T, Out, C>(p);
  }
};

}  // namespace tensorcraft::kernel::gemm

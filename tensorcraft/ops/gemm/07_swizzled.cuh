// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lines of shared memory need no padding: a chunk's place is exchanged with another by the bits of
// its line, so the 8 chunks that ldmatrix reads at once still lie in 8 different bank groups.
//
// Now lines are whole multiples of 128 bytes, as cp.async fills them best, and copies need no
// registers: those hold the fragments of the step after this one instead, so that a multiply never
// waits for its operands. With s stages a copy has s - 2 steps of the product to arrive:
//   64 x 64 x 64 products of a warp = 128 instructions a step, more than 500 clocks.
// Compared with tensor_core the two barriers and the round trip through registers become one
// barrier, and it stands where the next operands are already loaded.
// It demands a unit stride in A and in B, and that every line starts at a multiple of 16 bytes.
// Float operands are rounded to tf32, which the caller must have allowed.
#include "tensorcraft/device/copy_ring.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/gemm/warp_tile.cuh"

namespace tensorcraft::kernel::gemm {

// Chunk n of a line lies at n ^ exchange(line). For any 8 lines from a multiple of 8 the 8 chunks
// of one n lie in 8 bank groups. The lowest bits of the line count most, so that 4 lines of a pair
// of chunks do too: that is what a transposed float operand reads.
template <class T, int Lines, int Length>
struct SwizzledTile {
  static constexpr int lines = Lines, per_line = Length / kChunk<T>;
  static constexpr int span = per_line < 8 ? per_line : 8;  // chunks that are exchanged
  static_assert(per_line % span == 0 && (span & (span - 1)) == 0);
  Vec4<uint32_t> at[Lines * per_line];

  TC_DEVICE static int place(int line, int n) {
    // 8 / span lines fill the banks once; lines beyond them must differ.
    const int turn = line / (8 / span);
    const int exchange = span == 8 ? turn % 4 * 2 + turn / 4 % 2 : turn % span;
    const int within = n % span;
    return line * per_line + (n - within) + (within ^ exchange);
  }
  TC_DEVICE const T* chunk(int line, int n) const {
    return reinterpret_cast<const T*>(&at[place(line, n)]);
  }
};

template <class T, Config C>
struct SwizzledShared {
  static constexpr bool a_along_k = C.a_layout == Layout::row_major;
  static constexpr bool b_along_k = C.b_layout == Layout::column_major;
  using A = SwizzledTile<T, a_along_k ? C.block_m : C.block_k, a_along_k ? C.block_k : C.block_m>;
  using B = SwizzledTile<T, b_along_k ? C.block_n : C.block_k, b_along_k ? C.block_k : C.block_n>;
  struct Stage {
    A a;
    B b;
  };
  union {
    Stage stages[C.stages];
    Slab<C> slabs[C.threads / 32];
  };
};

// A thread's share of the copies of one operand's tiles. kWhole: lines are a multiple of 16 bytes
// long, else the last chunk of a line may lie partly inside the matrix.
template <class T, class Tile, int Threads, bool kWhole>
struct Copier {
  static constexpr int line_step = Threads / Tile::per_line;  // from one chunk of a thread on
  static constexpr int count = Tile::lines / line_step;
  static_assert(Threads % Tile::per_line == 0 && count * line_step == Tile::lines);

  const T* source;  // of the thread's first chunk
  int64_t stride;
  int line, n;  // where that chunk lies in the tile

  TC_DEVICE Copier(const T* from, int64_t line_stride)
      : stride(line_stride), line(threadIdx.x / Tile::per_line), n(threadIdx.x % Tile::per_line) {
    source = from + line * stride + n * kChunk<T>;
  }

  // Starts copying the tile, of which `lines` x `length` lie inside the matrix; the rest becomes 0.
  TC_DEVICE void copy(Tile& tile, int lines, int length) const {
    const int left = (length - n * kChunk<T>)*int(sizeof(T));
    const int bytes = left <= 0 ? 0 : kWhole || left >= kVectorBytes ? kVectorBytes : left;
    const T* from = source;
#pragma unroll
    for (int i = 0; i < count; ++i, from += line_step * stride) {
      const int at = line + i * line_step;
      ptx::cp_async_cg_16(&tile.at[Tile::place(at, n)], from, at < lines ? bytes : 0);
    }
  }
};

template <class T, class Out, Config C>
TC_DEVICE void swizzled(const Params& p) {
  using Shared = SwizzledShared<T, C>;
  constexpr int warps_n = C.block_n / C.warp_n, steps = C.block_k / kStep<T>;
  static_assert(C.threads == C.block_m / C.warp_m * warps_n * 32, "the warps cover the tile");
  static_assert(sizeof(Shared) == swizzled_shared_bytes(C, sizeof(T)));
  static_assert(C.block_k % (2 * kStep<T>) == 0, "an even number of steps alternates fragments");
  auto& shared = dynamic_shared<Shared>();
  const Tile tile = block_tile<C>(p);
  const int warp = threadIdx.x / 32;
  const int row = warp / warps_n * C.warp_m, col = warp % warps_n * C.warp_n;
  const int rows = min_of(p.m - tile.row, C.block_m);
  const int cols = min_of(p.n - tile.col, C.block_n);

  Copier<T, typename Shared::A, C.threads, C.a_vector == kChunk<T>> a(
      batch_entry<const T>(p, p.a, tile.batch) + tile.row * p.a.row_stride,
      Shared::a_along_k ? p.a.row_stride : p.a.col_stride);
  Copier<T, typename Shared::B, C.threads, C.b_vector == kChunk<T>> b(
      batch_entry<const T>(p, p.b, tile.batch) + tile.col * p.b.col_stride,
      Shared::b_along_k ? p.b.col_stride : p.b.row_stride);
  int64_t to_copy = 0;  // the first k that is not on its way
  const auto copy = [&](int stage) {
    if (to_copy >= p.k) return;
    const int left = min_of(p.k - to_copy, C.block_k);
    a.copy(shared.stages[stage].a, Shared::a_along_k ? rows : left,
           Shared::a_along_k ? left : rows);
    b.copy(shared.stages[stage].b, Shared::b_along_k ? cols : left,
           Shared::b_along_k ? left : cols);
    a.source += C.block_k * p.a.col_stride;
    b.source += C.block_k * p.b.row_stride;
    to_copy += C.block_k;
  };
  CopyRing<C.stages> ring;
  WarpSums<C> sums = {};
  Fragments<C> fragments[2];
  const auto load = [&](int stage, int step) {
    fragments[step % 2].template load<T>(shared.stages[stage].a, shared.stages[stage].b, row, col,
                                         step * kStep<T>);
  };
#pragma unroll
  for (int i = 0; i < C.stages - 1; ++i) ring.fill(copy);
  int stage = ring.next();
  if (p.k > 0) load(stage, 0);
  for (int64_t k0 = 0; k0 < p.k; k0 += C.block_k) {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      // Before the next fragments are live: the copies' addresses need registers too.
      if (step == 0) ring.fill(copy);
      if (step + 1 < steps) {
        load(stage, step + 1);
      } else {
        stage = ring.next();
        if (k0 + C.block_k < p.k) load(stage, 0);
      }
      sums.template add_product<T>(fragments[step % 2]);
    }
  }
  ring.finish();
  store_sums(Epilogue<T, Out, C>(p, tile.batch), shared.slabs[warp], sums, tile.row + row,
             tile.col + col);
}

// The same for float operands, by the name that says what becomes of them.
template <class T, class Out, Config C>
TC_DEVICE void swizzled_tf32(const Params& p) {
  swizzled<T, Out, C>(p);
}

}  // namespace tensorcraft::kernel::gemm

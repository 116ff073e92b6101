// SPDX-License-Identifier: Apache-2.0
#pragma once
// persistent in float32: the copy engine brings tiles, and threads do nothing but multiply-adds and
// the loads for them.
//
// A multiprocessor issues as many instructions a clock as it has multiply-adds, so each instruction
// beside them costs. async has, for 1024 of a thread, 64 loads from shared memory, 10 copies that
// transpose what lies along k, and their addresses. Here nothing is transposed: a load of 16 bytes
// brings four k of one row, or four rows of one k, so 8 x 8 sums need 4 loads a k in any layout.
// Two sets of operands for four k each hide the loads behind 256 multiply-adds a thread:
//   64 sums + 2 x 4 x (8 + 8) operands, which a producer's registers make room for.
// It demands float32 operands whose lines start at multiples of 16 bytes, a unit stride each.
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/gemm/quads.cuh"
#include "tensorcraft/ops/gemm/schedule.cuh"

namespace tensorcraft::kernel::gemm {

// A thread's rows of A, or columns of B, in those of its warp, which kLanes share. A load's units
// of the lanes are in different banks. Stages begin at multiples of 1024 bytes, which lets the
// swizzle be a bit-wise operation on the sum of all other parts of an address.
template <class Tile, bool kAlongK, int kLanes>
struct FloatOperand {
  static constexpr int count = 8, unit = 4;                       // floats of a load: 16 bytes
  static constexpr int neighbours = kAlongK ? 8 / kLanes : unit;  // then the next lane's
  static constexpr int line_bytes = kBoxChunks * kVectorBytes;
  float at[2][unit][count];             // two sets of `unit` k
  int first[kAlongK ? neighbours : 1];  // bytes from the ring's start to the first unit, in stage 0

  TC_DEVICE static constexpr int offset(int lane, int i) {
    return lane * neighbours + i % neighbours + i / neighbours * (neighbours * kLanes);
  }
  // For a warp's part of the tile at `tile` from number `start` on, a multiple of 32.
  TC_DEVICE FloatOperand(int tile, int start, int lane) {
    const int part = tile + (kAlongK ? Tile::place(start, 0) : Tile::place(0, start / unit));
#pragma unroll
    for (int e = 0; e < (kAlongK ? neighbours : 1); ++e)
      first[e] = part + (kAlongK ? Tile::place(offset(lane, e), 0) : Tile::place(0, lane));
  }
  // Reads the `unit` k from number k0 + set * unit on, k0 a multiple of 8, into a set.
  TC_DEVICE void load(int set, const unsigned char* ring, int stage, int k0) {
    if constexpr (kAlongK) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        const int place = (first[i % neighbours] + stage) ^ ((k0 / unit + set) * kVectorBytes);
        const auto four = load_four(ring + place + i / neighbours * 8 * line_bytes);
#pragma unroll
        for (int k = 0; k < unit; ++k) at[set][k][i] = four[k];
      }
    } else {
#pragma unroll
      for (int n = 0; n < unit * count / unit; ++n) {
        const int k = n % unit, line = set * unit + k, i = n / unit;
        // Eight lanes have the units of a line; four have half of them, and the others are next.
        const int swizzle = kLanes == 8 ? line : line % 4;
        const int rest =
            kLanes == 8 ? i * Tile::place(0, kBoxChunks) : (i * 4 ^ line / 4 * 4) * kVectorBytes;
        const int place = (first[0] + stage + k0 * line_bytes) ^ (swizzle * kVectorBytes);
        const auto four = load_four(ring + place + line * line_bytes + rest);
#pragma unroll
        for (int e = 0; e < unit; ++e) at[set][k][i * unit + e] = four[e];
      }
    }
  }

 private:
  TC_DEVICE static Vec4<float> load_four(const unsigned char* from) {
    return load_vector<unit>(reinterpret_cast<const float*>(from));
  }
};

// A warpgroup that multiplies with its threads' own instructions: warps of 64 rows, 8 x 8 sums a
// thread.
template <class Out, Config C>
struct FloatConsumer {
  using Stage = RingStage<float, C>;
  static constexpr bool takes_turns = false;
  static constexpr int lanes_m = 8, lanes_n = 4, warps_m = C.block_m / 64;
  static constexpr int warp_n = C.block_n / (C.consumers * 4 / warps_m);
  using A = FloatOperand<typename Stage::A, Stage::a_along_k, lanes_m>;
  using B = FloatOperand<typename Stage::B, Stage::b_along_k, lanes_n>;
  static_assert(C.block_m % 64 == 0 && C.consumers * 4 % warps_m == 0 && warp_n == 32 && !C.swap);

  Ring<float, Out, C>& ring;
  const WgmmaParams<C>& p;
  int first_row, first_col;  // of the warp's part of a tile
  StageCursor<C.stages> read;
  float sums[A::count][B::count];
  A a;
  B b;

  TC_DEVICE FloatConsumer(Ring<float, Out, C>& memory, const WgmmaParams<C>& params, int)
      : ring(memory),
        p(params),
        first_row(warp() % warps_m * 64),
        first_col(warp() / warps_m * warp_n),
        a(0, first_row, lane_m()),
        b(int(sizeof(typename Stage::A)), first_col, lane_n()) {}

  // A tile's `steps` along k, of which there is one at least. What the next four k need is on its
  // way while these are multiplied, past the end of a stage too.
  TC_DEVICE void consume_all(int steps) {
#pragma unroll
    for (auto& row : sums) {
#pragma unroll
      for (float& sum : row) sum = 0;
    }
    wait();
    load(0, read.stage, 0);
#pragma unroll 1
    for (int left = steps; left > 0; --left) {
      const int stage = read.stage;
      read.advance();
#pragma unroll 1
      for (int k = 0; k < C.block_k; k += 8) {
        load(1, stage, k);
        multiply(0);
        if (k + 8 < C.block_k) {
          load(0, stage, k + 8);
        } else if (left > 1) {
          wait();
          load(0, read.stage, 0);
        }
        multiply(1);
      }
      release_stage(ring, stage);
    }
  }

  TC_DEVICE void finish(const BlockTile& tile) const {
    const Epilogue<float, Out, C> epilogue(p, tile.batch);
    constexpr int cols = B::neighbours;
#pragma unroll
    for (int i = 0; i < A::count; ++i) {
      const int64_t row = tile.row + first_row + A::offset(lane_m(), i);
#pragma unroll
      for (int j = 0; j < B::count; j += cols) {
        float x[cols];
#pragma unroll
        for (int e = 0; e < cols; ++e) x[e] = sums[i][j + e];
        epilogue.store(x, row, tile.col + first_col + B::offset(lane_n(), j));
      }
    }
  }
  TC_DEVICE void finish_stores() const {}

 private:
  // Lanes that differ by 1, 16 or 17 share a row, by 2 or 4 a column, so the halves of a warp read
  // the same few addresses at a time.
  TC_DEVICE static int lane_m() { return threadIdx.x / 2 % lanes_m; }
  TC_DEVICE static int warp() { return __shfl_sync(0xffffffffu, int(threadIdx.x) / 32, 0); }
  TC_DEVICE static int lane_n() { return threadIdx.x % 32 / 16 * 2 + threadIdx.x % 2; }

  TC_DEVICE void wait() const { ptx::mbarrier_wait_parity(&ring.full[read.stage], read.parity); }
  TC_DEVICE void load(int set, int stage, int k) {
    const auto* stages = reinterpret_cast<const unsigned char*>(ring.stages);
    a.load(set, stages, stage * int(sizeof(Stage)), k);
    b.load(set, stages, stage * int(sizeof(Stage)), k);
  }
  TC_DEVICE void multiply(int set) {
#pragma unroll
    for (int k = 0; k < A::unit; ++k) add_outer_product(sums, a.at[set][k], b.at[set][k]);
  }
};

struct PersistentFloat32 {
  static constexpr bool begins_itself = true;
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const WgmmaParams<C>& p) {
    run_tiles<FloatConsumer<Out, C>, T, Out, C>(p);
  }
};

}  // namespace tensorcraft::kernel::gemm

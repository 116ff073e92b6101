// SPDX-License-Identifier: Apache-2.0
#pragma once
// The copy engine brings whole tiles, two blocks of a cluster share their rows of A.
//
// One thread issues a copy that 128 threads of swizzled needed addresses and instructions for, and
// the engine places chunks by its own 128-byte swizzle. Barriers in shared memory count bytes and
// warps, so no step waits for all threads of the block. Each block of the pair fetches half of the
// rows of A for both, so a step of 256 x 256 outputs reads
//   256 + 2 x 128 lines from L2 instead of 2 x (256 + 128): a third less.
// It demands sm_90, 16-bit operands whose lines start at multiples of 16 bytes, and at most one
// batch axis.
#include "tensorcraft/device/ptx/cluster.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/ptx/tma.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/gemm/warp_tile.cuh"

namespace tensorcraft::kernel::gemm {

inline constexpr int kLineChunks = 8;  // 128 bytes, the widest line that the engine swizzles

// Boxes as the copy engine writes them: lines of 128 bytes whose chunk n lies at n ^ line % 8.
// Where lines of the tile are longer, they go on in the next box.
template <class T, int Lines, int Length>
struct BoxedTile {
  static constexpr int length = Length;
  static_assert(Lines % 8 == 0 && Length % (kLineChunks * kChunk<T>) == 0);
  Vec4<uint32_t> at[Lines * Length / kChunk<T>];

  // Bytes from the start of the tile.
  TC_DEVICE static int place(int line, int n) {
    const int in_boxes = n / kLineChunks * Lines + line;
    return (in_boxes * kLineChunks + (n % kLineChunks ^ line % 8)) * kVectorBytes;
  }
};

// A lane's chunks of a warp's part of a tile for ldmatrix, as load_fragments() has them. Blocks of
// 16 x kStep lie 16 lines or 2 chunks apart; the first is a constant behind a lane's place, the
// other one changes bits of it, so that few registers hold all addresses. kSecondAlongK: see there.
template <class T, class Tile, bool kAlongK, bool kSecondAlongK>
struct BoxedReader {
  static_assert(sizeof(T) == 2);
  int first;

  TC_DEVICE explicit BoxedReader(int i) {
    const int lane = threadIdx.x % 32, matrix = lane / 8;
    const int along_i = kSecondAlongK ? matrix / 2 : matrix % 2;
    const int along_k = kSecondAlongK ? matrix % 2 : matrix / 2;
    first = kAlongK ? Tile::place(i + along_i * 8 + lane % 8, along_k)
                    : Tile::place(along_k * 8 + lane % 8, i / 8 + along_i);
  }

  template <int kBlocks>
  TC_DEVICE void load(uint32_t (&to)[kBlocks][4], const Tile& tile, int step) const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(tile.at);
#pragma unroll
    for (int i = 0; i < kBlocks; ++i) {
      const int lines = (kAlongK ? i : step) * 16, chunks = (kAlongK ? step : i) * 2;
      const int at = (first ^ chunks * kVectorBytes) + lines * kLineChunks * kVectorBytes;
      if constexpr (kAlongK)
        ptx::ldmatrix_x4(to[i], bytes + at);
      else
        ptx::ldmatrix_x4_trans(to[i], bytes + at);
    }
  }
};

template <class T, Config C>
struct alignas(1024) TmaShared {
  static constexpr bool a_along_k = C.a_layout == Layout::row_major;
  static constexpr bool b_along_k = C.b_layout == Layout::column_major;
  using A = BoxedTile<T, a_along_k ? C.block_m : C.block_k, a_along_k ? C.block_k : C.block_m>;
  using B = BoxedTile<T, b_along_k ? C.block_n : C.block_k, b_along_k ? C.block_k : C.block_n>;
  struct Stage {
    A a;
    B b;
  };
  union {
    Stage stages[C.stages];
    Slab<C> slabs[C.threads / 32];
  };
  uint64_t full[C.stages];   // the bytes of a stage have come
  uint64_t empty[C.stages];  // no warp of the cluster reads it any more
};

// Starts copying `Size` of a tile's rows or columns from number i on, with block_k of k: boxes of
// `Lines` lines. kShared: into every block of the cluster.
template <class T, bool kAlongK, bool kShared, int Size, int Lines>
TC_DEVICE void copy_boxes(Vec4<uint32_t>* to, const TensorMap* map, int i, int k, int batch,
                          uint64_t* full) {
  constexpr int width = kAlongK ? Lines : kLineChunks * kChunk<T>;
  static_assert(Size % width == 0);
#pragma unroll
  for (int n = 0; n < Size; n += width, to += Lines * kLineChunks) {
    const int32_t at[3] = {kAlongK ? k : i + n, kAlongK ? i + n : k, batch};
    if constexpr (kShared)
      ptx::tma_load_multicast(to, map, at, full, (1 << kTmaCluster) - 1);
    else
      ptx::tma_load(to, map, at, full);
  }
}

// What one thread of a block starts for one stage: its part of A for both blocks, and its own B.
template <class T, Config C>
struct TmaProducer {
  using Shared = TmaShared<T, C>;
  static constexpr int rows = C.block_m / kTmaCluster;
  static_assert(C.block_k == kLineChunks * kChunk<T>, "a step along k is one line");

  const TmaParams& p;
  Shared& shared;
  int row, col, a_batch, b_batch, rank;

  TC_DEVICE TmaProducer(const TmaParams& params, Shared& memory, const Tile& tile)
      : p(params), shared(memory), col(int(tile.col)), rank(blockIdx.x % kTmaCluster) {
    row = int(tile.row) + rank * rows;
    a_batch = p.a.batch_strides[0] ? int(tile.batch) : 0;  // a matrix of all entries is one
    b_batch = p.b.batch_strides[0] ? int(tile.batch) : 0;
  }

  TC_DEVICE void copy(int stage, int k) const {
    auto& to = shared.stages[stage];
    uint64_t* full = &shared.full[stage];
    // The other block's part counts too, also where it comes before this.
    ptx::mbarrier_arrive_expect_tx(full, sizeof(to));
    copy_boxes<T, Shared::a_along_k, true, rows, tma_a_lines(C)>(
        to.a.at + rank * (rows * kLineChunks), &p.a_map, row, k, a_batch, full);
    copy_boxes<T, Shared::b_along_k, false, C.block_n, tma_b_lines(C)>(to.b.at, &p.b_map, col, k,
                                                                       b_batch, full);
  }
};

// A place in the ring of stages and the parity of its current phase.
template <int kStages>
struct StageCursor {
  int stage = 0;
  uint32_t parity = 0;

  TC_DEVICE void advance() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
};

template <class T, class Out, Config C>
TC_DEVICE void tma(const TmaParams& p) {
  using Shared = TmaShared<T, C>;
  constexpr int warps_n = C.block_n / C.warp_n, steps = C.block_k / kStep<T>;
  static_assert(C.threads == C.block_m / C.warp_m * warps_n * 32, "the warps cover the tile");
  static_assert(sizeof(Shared) == tma_shared_bytes(C, sizeof(T)));
  static_assert(C.warp_m <= 64 && C.warp_n <= 64, "a warp's part is in one box");
  static_assert(C.stages >= 2 && steps >= 2 && steps % 2 == 0);
  auto& shared = dynamic_shared<Shared>();
  const Tile tile = block_tile<C, kTmaCluster>(p);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = warp / warps_n * C.warp_m, col = warp % warps_n * C.warp_n;
  const int k_end = int(p.k);

  const TmaProducer<T, C> producer(p, shared, tile);
  if (threadIdx.x == 0) {
    ptx::prefetch_tensormap(&p.a_map);
    ptx::prefetch_tensormap(&p.b_map);
    for (int i = 0; i < C.stages; ++i) {
      ptx::mbarrier_init(&shared.full[i], 1);
      ptx::mbarrier_init(&shared.empty[i], kTmaCluster * C.threads / 32);
    }
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_arrive_relaxed();  // the fence has ordered the barriers
  ptx::cluster_wait();
  if (threadIdx.x == 0) {
    for (int i = 0; i < C.stages - 1; ++i)
      if (i * C.block_k < k_end) producer.copy(i, i * C.block_k);
  }

  StageCursor<C.stages> read, fill{C.stages - 1, 1};  // a fresh barrier has passed parity 1
  const BoxedReader<T, typename Shared::A, Shared::a_along_k, false> a_reader(row);
  const BoxedReader<T, typename Shared::B, Shared::b_along_k, true> b_reader(col);
  WarpSums<C> sums = {};
  Fragments<C> fragments[2];
  const auto load = [&](int step) {
    const auto& from = shared.stages[read.stage];
    a_reader.load(fragments[step % 2].a, from.a, step);
    b_reader.load(fragments[step % 2].b, from.b, step);
  };
  const auto load_next_stage = [&] {
    ptx::mbarrier_wait_parity(&shared.full[read.stage], read.parity);
    load(0);
  };
  if (k_end > 0) load_next_stage();
  for (int k = 0; k < k_end; k += C.block_k) {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      // In the middle of a step along k, when the other warps have left the stage before it too.
      if (step == steps / 2) {
        const int to_copy = k + (C.stages - 1) * C.block_k;
        if (threadIdx.x == 0 && to_copy < k_end) {
          ptx::mbarrier_wait_parity(&shared.empty[fill.stage], fill.parity);
          producer.copy(fill.stage, to_copy);
        }
        fill.advance();
      }
      if (step + 1 < steps) {
        load(step + 1);
      } else {
        __syncwarp();  // every lane has read the stage
        if (lane < kTmaCluster) ptx::mbarrier_arrive_cluster_read(&shared.empty[read.stage], lane);
        read.advance();
        if (k + C.block_k < k_end) load_next_stage();
      }
      sums.template add_product<T>(fragments[step % 2]);
    }
  }
  // No warp of the cluster reads a stage or arrives at a barrier any more, and every copy into this
  // block has been waited for.
  ptx::cluster_sync();
  store_sums(Epilogue<T, Out, C>(p, tile.batch), shared.slabs[warp], sums, tile.row + row,
             tile.col + col);
}

}  // namespace tensorcraft::kernel::gemm

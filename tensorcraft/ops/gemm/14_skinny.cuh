// SPDX-License-Identifier: Apache-2.0
#pragma once
// Up to 64 tokens: the weights still are all that counts. Tensor cores get them as the 16 rows of
// mma.sync and tokens as its columns: D^T = B^T A^T wastes at most 15 columns of a step.
//   time = bytes of the weights / bandwidth, each read once, if 110 blocks and more stream
// n / 128 tiles are fewer, so the blocks of a cluster divide k: 4096 outputs are 32 tiles x 4
// parts. One warp only starts copies, as soon as a stage is empty: 64 KiB and more of a
// multiprocessor are in flight, where 32 are needed. The parts are added in the order of ranks, out
// of the blocks' shared memory, so there is no workspace, no atomic, and the same bits each time.
// It demands sm_90, 16-bit operands whose lines start at multiples of 16 bytes, and at most one
// batch dimension.
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/load.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tile/boxed_reader.cuh"
#include "tensorcraft/device/tile/stage_cursor.cuh"
#include "tensorcraft/device/tile/warp_sums.cuh"
#include "tensorcraft/ops/gemm/few_rows.cuh"

namespace tensorcraft::kernel::gemm {

// One step along k. If tokens lie side by side, a line has as many as the engine's box is wide.
template <class T, Config C>
struct SkinnyStage {
  using Weights = BoxedTile<T, weights_along_k(C) ? block_outputs(C) : C.block_k,
                            weights_along_k(C) ? C.block_k : block_outputs(C)>;
  using Tokens = BoxedTile<T, tokens_along_k(C) ? block_tokens(C) : C.block_k, C.block_k>;
  Weights weights;
  Tokens tokens;
};

template <class T, Config C>
struct alignas(1024) SkinnyShared {
  // Padded, so that the sums of a warp meet different banks.
  using Sums = SplitSums<C, 1, C.exchanged ? 8 : 4>;
  union {
    SkinnyStage<T, C> stages[C.stages];
    Sums sums;  // after the last step
  };
  uint64_t full[C.stages];   // the bytes of a stage have come
  uint64_t empty[C.stages];  // no warp reads it any more
};

// The ring of stages, which warp 0 fills and the others empty. A block has every split-th step.
template <class T, Config C>
struct SkinnyRing {
  using Shared = SkinnyShared<T, C>;
  static constexpr int warps = block_outputs(C) / warp_outputs(C), steps = C.block_k / kMmaDepth<T>;
  static_assert(C.threads == 32 * (warps + 1));
  using Sums = WarpSums<warp_outputs(C), block_tokens(C)>;

  Shared& shared;
  int first, end;  // along k

  TC_DEVICE SkinnyRing(Shared& memory, const TmaParams& p, int rank)
      : shared(memory), first(rank * C.block_k), end(int(p.k)) {
    if (threadIdx.x == 0) {
      ptx::prefetch_tensormap(&p.a_map);
      ptx::prefetch_tensormap(&p.b_map);
      for (int i = 0; i < C.stages; ++i) {
        ptx::mbarrier_init(&shared.full[i], 1);
        ptx::mbarrier_init(&shared.empty[i], warps);
      }
      ptx::fence_mbarrier_init();
    }
    __syncthreads();
  }

  // By one thread.
  TC_DEVICE void produce(const TmaParams& p, const FewRowsTile& tile) const {
    using Stage = SkinnyStage<T, C>;
    const TensorMap *weights = C.exchanged ? &p.a_map : &p.b_map,
                    *tokens = C.exchanged ? &p.b_map : &p.a_map;
    const int weights_batch = entry(C.exchanged ? p.a : p.b, tile.batch);
    const int tokens_batch = entry(C.exchanged ? p.b : p.a, tile.batch);
    const uint64_t policy = ptx::createpolicy_evict_first();
    StageCursor<C.stages> fill{0, 1};
    for (int k = first; k < end; k += C.block_k * C.split, fill.advance()) {
      Stage& stage = shared.stages[fill.stage];
      uint64_t* full = &shared.full[fill.stage];
      ptx::mbarrier_wait_parity(&shared.empty[fill.stage], fill.parity);
      ptx::mbarrier_arrive_expect_tx(full, sizeof(stage));
      copy_weights(stage.weights.at, weights, int(tile.output), k, weights_batch, full, policy);
      constexpr int lines = tokens_along_k(C) ? block_tokens(C) : C.block_k;
      copy_boxes<T, tokens_along_k(C), 1, lines, lines>(stage.tokens.at, tokens, 0, k, tokens_batch,
                                                        full);
    }
  }

  // Adds up the products of the warp's outputs, from `output` of the block on.
  TC_DEVICE void consume(Sums& sums, int output) const {
    using Stage = SkinnyStage<T, C>;
    const BoxedReader<T, typename Stage::Weights, weights_along_k(C), false> weights(output);
    const BoxedReader<T, typename Stage::Tokens, tokens_along_k(C), true> tokens(0);
    StageCursor<C.stages> read;
    for (int k = first; k < end; k += C.block_k * C.split, read.advance()) {
      const Stage& stage = shared.stages[read.stage];
      ptx::mbarrier_wait_parity(&shared.full[read.stage], read.parity);
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        Fragments<warp_outputs(C), block_tokens(C)> fragments;
        weights.load(fragments.a, stage.weights, step);
        tokens.load(fragments.b, stage.tokens, step);
        sums.template add_product<T>(fragments);
      }
      __syncwarp();  // every lane has read the stage
      if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&shared.empty[read.stage]);
    }
  }

 private:
  // As copy_boxes() does, for L2 to replace first.
  TC_DEVICE static void copy_weights(Vec4<uint32_t>* to, const TensorMap* map, int output, int k,
                                     int batch, uint64_t* full, uint64_t policy) {
    constexpr bool along_k = weights_along_k(C);
    constexpr int lines = along_k ? block_outputs(C) : C.block_k;
    constexpr int width = along_k ? lines : kBoxChunks * kVectorSize<T>;
#pragma unroll
    for (int n = 0; n < block_outputs(C); n += width, to += lines * kBoxChunks) {
      const int32_t at[3] = {along_k ? k : output + n, along_k ? output + n : k, batch};
      ptx::tma_load_hint(to, map, at, full, policy);
    }
  }
  TC_DEVICE static int entry(const Matrix& x, uint32_t batch) {
    return x.batch_strides[0] ? int(batch) : 0;
  }
};

struct Skinny {
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const TmaParams& p) {
    using Ring = SkinnyRing<T, C>;
    auto& shared = dynamic_shared<SkinnyShared<T, C>>();
    static_assert(sizeof(shared) == skinny_shared_bytes(C));
    const FewRowsTile tile = few_rows_tile<C>(p);
    const int warp = int(threadIdx.x) / 32 - 1, lane = threadIdx.x % 32;
    const int output = warp * warp_outputs(C);
    const Ring ring(shared, p, tile.rank);
    typename Ring::Sums sums = {};
    if (warp >= 0)
      ring.consume(sums, output);
    else if (lane == 0)
      ring.produce(p, tile);
    __syncthreads();  // no warp reads a stage any more
    if (warp >= 0) {
#pragma unroll
      for (int i = 0; i < warp_outputs(C) / 16; ++i) {
#pragma unroll
        for (int j = 0; j < block_tokens(C) / 8; ++j) {
#pragma unroll
          for (int e = 0; e < 4; ++e)
            shared.sums.sum(0, j * 8 + lane % 4 * 2 + e % 2,
                            output + i * 16 + e / 2 * 8 + lane / 4) = sums.at[i][j][e];
        }
      }
    }
    shared.sums.store(Epilogue<T, Out, C>(p, tile.batch), C.exchanged ? tile.output : 0,
                      C.exchanged ? 0 : tile.output);
  }
};

}  // namespace tensorcraft::kernel::gemm

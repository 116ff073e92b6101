// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/copy_ring.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/load.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/ptx/store.cuh"
#include "tests/wrappers/kernels/params.h"

// Blocks of 64 threads. Every thread reads what the thread across the block has copied.
namespace tensorcraft::test {

inline constexpr int kCopyThreads = 64, kCopyStages = 4, kCopyWords = kCopyThreads * 4;
inline constexpr int kRingTiles = 7, kRingStages = 3;

struct CopyTiles {
  alignas(16) uint32_t words[kCopyStages][kCopyWords];
  uint64_t barrier;
};

// in: how many bytes each thread copies; kWords a thread. out: the same words, zeros from the byte
// on that is not copied.
template <int kWords>
TC_DEVICE void copy_bytes(const Params& p) {
  auto& words = static_shared<CopyTiles>().words[0];
  const int t = int(threadIdx.x), other = kCopyThreads - 1 - t;
  const uint32_t* from = block_in(p) + kCopyThreads + t * kWords;
  const int bytes = int(block_in(p)[t]);
  if constexpr (kWords == 1) ptx::cp_async_ca_4(&words[t], from, bytes);
  if constexpr (kWords == 2) ptx::cp_async_ca_8(&words[t * 2], from, bytes);
  if constexpr (kWords == 4) ptx::cp_async_cg_16(&words[t * 4], from, bytes);
  ptx::cp_async_wait_all();
  __syncthreads();
  for (int i = 0; i < kWords; ++i) block_out(p)[other * kWords + i] = words[other * kWords + i];
}
TC_DEVICE void cp_async_4(const Params& p) { copy_bytes<1>(p); }
TC_DEVICE void cp_async_8(const Params& p) { copy_bytes<2>(p); }
TC_DEVICE void cp_async_16(const Params& p) { copy_bytes<4>(p); }

// The group that a wait lets through is read before the next wait.
template <int kPending>
TC_DEVICE void wait_and_read(const Params& p) {
  constexpr int kStage = kCopyStages - 1 - kPending;
  ptx::cp_async_wait_group<kPending>();
  const int t = int(threadIdx.x) * 4;
  for (int i = 0; i < 4; ++i)
    block_out(p)[kStage * kCopyWords + t + i] =
        static_shared<CopyTiles>().words[kStage][t + i] ^ uint32_t(kPending);
}
TC_DEVICE void cp_async_groups(const Params& p) {
  CopyTiles& tiles = static_shared<CopyTiles>();
  const int t = int(threadIdx.x) * 4;
  for (int stage = 0; stage < kCopyStages; ++stage) {
    ptx::cp_async_cg_16(&tiles.words[stage][t], block_in(p) + stage * kCopyWords + t, 16);
    ptx::cp_async_commit_group();
  }
  wait_and_read<3>(p);
  wait_and_read<2>(p);
  wait_and_read<1>(p);
  wait_and_read<0>(p);
}

// kRingTiles tiles of a word a thread pass through kRingStages stages; then a stage is used again.
TC_DEVICE void copy_ring(const Params& p) {
  CopyTiles& tiles = static_shared<CopyTiles>();
  const int t = int(threadIdx.x), other = kCopyThreads - 1 - t;
  CopyRing<kRingStages> ring;
  int next_tile = 0;
  const auto copy = [&](int stage) {
    if (next_tile < kRingTiles)
      ptx::cp_async_ca_4(&tiles.words[stage][t], block_in(p) + next_tile * kCopyThreads + t, 4);
    ++next_tile;
  };
  for (int i = 0; i < kRingStages - 1; ++i) ring.fill(copy);
  for (int tile = 0; tile < kRingTiles; ++tile) {
    const int stage = ring.next();
    block_out(p)[tile * kCopyThreads + t] = tiles.words[stage][other];
    ring.fill(copy);
  }
  ring.finish();
  tiles.words[0][t] = block_in(p)[t] + 1;
  __syncthreads();
  block_out(p)[kRingTiles * kCopyThreads + t] = tiles.words[0][other];
}

// The copies of all threads complete a phase of a barrier, twice.
template <bool kIncrements>
TC_DEVICE void arrive_by_copies(const Params& p) {
  CopyTiles& tiles = static_shared<CopyTiles>();
  const int t = int(threadIdx.x) * 4, other = kCopyWords - 4 - t;
  if (threadIdx.x == 0) ptx::mbarrier_init(&tiles.barrier, kCopyThreads);
  __syncthreads();
  for (uint32_t phase = 0; phase < 2; ++phase) {
    const int at = int(phase) * kCopyWords;
    ptx::cp_async_cg_16(&tiles.words[phase][t], block_in(p) + at + t, 16);
    if constexpr (kIncrements) {
      ptx::cp_async_mbarrier_arrive(&tiles.barrier);
      ptx::mbarrier_arrive(&tiles.barrier);
    } else {
      ptx::cp_async_mbarrier_arrive_noinc(&tiles.barrier);
    }
    ptx::mbarrier_wait_parity(&tiles.barrier, phase);
    for (int i = 0; i < 4; ++i) block_out(p)[at + t + i] = tiles.words[phase][other + i];
  }
}
TC_DEVICE void cp_async_arrive(const Params& p) { arrive_by_copies<true>(p); }
TC_DEVICE void cp_async_arrive_noinc(const Params& p) { arrive_by_copies<false>(p); }

// The words of each thread, in the other order.
TC_DEVICE void store_reversed(const Params& p, const ptx::Words4& y) {
  ptx::st_global_v4(block_out(p) + int(threadIdx.x) * 4,
                    {y.words[3], y.words[2], y.words[1], y.words[0]});
}
TC_DEVICE void ld_global_nc(const Params& p) {
  store_reversed(p, ptx::ld_global_nc_v4(block_in(p) + int(threadIdx.x) * 4));
}
TC_DEVICE void global_cs_v4(const Params& p) {
  const ptx::Words4 y = ptx::ld_global_cs_v4(block_in(p) + int(threadIdx.x) * 4);
  ptx::st_global_cs_v4(block_out(p) + int(threadIdx.x) * 4,
                       {y.words[3], y.words[2], y.words[1], y.words[0]});
}
TC_DEVICE void global_cs_narrow(const Params& p) {
  const auto* const from = block_in(p) + int(threadIdx.x) * 4;
  auto* const to = block_out(p) + int(threadIdx.x) * 4;
  const ptx::Words2 pair = ptx::ld_global_cs_v2(from);
  ptx::st_global_cs_v2(to, {ptx::ld_global_cs(from + 3), ptx::ld_global_cs(from + 2)});
  ptx::st_global_cs(to + 2, pair.words[1]);
  ptx::st_global_cs(to + 3, pair.words[0]);
}
TC_DEVICE void ld_global_hint(const Params& p) {
  const uint64_t policies[] = {ptx::createpolicy_evict_first(), ptx::createpolicy_evict_last(),
                               ptx::createpolicy_evict_normal()};
  const uint64_t policy = policies[threadIdx.x % 3];
  store_reversed(p, ptx::ld_global_hint_v4(block_in(p) + int(threadIdx.x) * 4, policy));
}
TC_DEVICE void cp_async_16_hint(const Params& p) {
  uint32_t* own = &static_shared<CopyTiles>().words[0][threadIdx.x * 4];
  ptx::cp_async_cg_16_hint(own, block_in(p) + int(threadIdx.x) * 4, ptx::createpolicy_evict_last());
  ptx::cp_async_wait_all();
  store_reversed(p, {own[0], own[1], own[2], own[3]});
}

}  // namespace tensorcraft::test

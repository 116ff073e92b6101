// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/bulk.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/ptx/tma.cuh"
#include "tensorcraft/device/shared.cuh"

// One box between a tensor and shared memory, by one warp.
namespace tensorcraft::kernel::copy_box {

constexpr int kBytes = 32 * 1024;

struct Params {
  TensorMap map;
  int32_t at[5];
  uint32_t words;  // of the box
  uint32_t* box;   // shared memory as it is after a load, or for a store
};

struct Shared {
  alignas(1024) uint32_t words[kBytes / 4];
  uint64_t barrier;
};

enum class Copy { load, store, add, min, max };

template <int kRank>
TC_DEVICE void load(const Params& p, Shared& s, const int32_t (&at)[kRank]) {
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&s.barrier, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(&s.barrier, p.words * 4);
    ptx::tma_load(s.words, &p.map, at, &s.barrier);
  }
  __syncwarp();
  ptx::mbarrier_wait_parity(&s.barrier, 0);
  for (uint32_t i = threadIdx.x; i < p.words; i += 32) p.box[i] = s.words[i];
}

template <int kRank, Copy kCopy>
TC_DEVICE void store(const Params& p, Shared& s, const int32_t (&at)[kRank]) {
  for (uint32_t i = threadIdx.x; i < p.words; i += 32) s.words[i] = p.box[i];
  ptx::fence_proxy_async();
  __syncwarp();
  if (threadIdx.x != 0) return;
  if constexpr (kCopy == Copy::store) ptx::tma_store(&p.map, at, s.words);
  if constexpr (kCopy == Copy::add) ptx::tma_reduce_add(&p.map, at, s.words);
  if constexpr (kCopy == Copy::min) ptx::tma_reduce_min(&p.map, at, s.words);
  if constexpr (kCopy == Copy::max) ptx::tma_reduce_max(&p.map, at, s.words);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group<0>();
}

template <int kRank, Copy kCopy>
TC_DEVICE void run(const Params& p) {
  Shared& s = dynamic_shared<Shared>();
  int32_t at[kRank];
  for (int i = 0; i < kRank; ++i) at[i] = p.at[i];
  if constexpr (kCopy == Copy::load)
    load(p, s, at);
  else
    store<kRank, kCopy>(p, s, at);
}

}  // namespace tensorcraft::kernel::copy_box

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/bulk.cuh"
#include "tensorcraft/device/ptx/cluster.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/load.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tests/wrappers/kernels/params.h"

// Contiguous copies and reductions by the copy engine; blocks of a warp.
namespace tensorcraft::test {

inline constexpr int kBulkWords = 256, kReduceWords = 64;

struct BulkShared {
  alignas(128) uint32_t words[2][kBulkWords];
  uint64_t barrier;
};

TC_DEVICE void clear(uint32_t* words, int count) {
  for (int i = int(threadIdx.x); i < count; i += 32) words[i] = 0;
}
TC_DEVICE void copy_in(uint32_t* words, const uint32_t* from, int count) {
  for (int i = int(threadIdx.x); i < count; i += 32) words[i] = from[i];
}

// in: bytes to load, three words of nothing, the words. out: the words that came, then zeros.
template <bool kHint>
TC_DEVICE void load_bytes(const Params& p) {
  BulkShared& s = static_shared<BulkShared>();
  const uint32_t bytes = block_in(p)[0];
  clear(s.words[0], kBulkWords);
  ptx::fence_proxy_async();
  __syncwarp();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_prefetch(block_in(p) + 4, bytes);
    ptx::mbarrier_init(&s.barrier, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(&s.barrier, bytes);
    if constexpr (kHint)
      ptx::cp_async_bulk_load_hint(s.words[0], block_in(p) + 4, bytes, &s.barrier,
                                   ptx::createpolicy_evict_last());
    else
      ptx::cp_async_bulk_load(s.words[0], block_in(p) + 4, bytes, &s.barrier);
  }
  __syncwarp();
  ptx::mbarrier_wait_parity(&s.barrier, 0);
  for (int i = int(threadIdx.x); i < kBulkWords; i += 32) block_out(p)[i] = s.words[0][i];
}
TC_DEVICE void bulk_load(const Params& p) { load_bytes<false>(p); }
TC_DEVICE void bulk_load_hint(const Params& p) { load_bytes<true>(p); }

// The same input stored in two groups; the first's source changes once it has been read, the
// second's once that is stored.
TC_DEVICE void bulk_store(const Params& p) {
  BulkShared& s = static_shared<BulkShared>();
  const uint32_t bytes = block_in(p)[0];
  copy_in(s.words[0], block_in(p) + 4, kBulkWords);
  copy_in(s.words[1], block_in(p) + 4, kBulkWords);
  ptx::fence_proxy_async();
  __syncwarp();
  if (threadIdx.x != 0) return;
  ptx::cp_async_bulk_store(block_out(p), s.words[0], bytes);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_store(block_out(p) + kBulkWords, s.words[1], kBulkWords * 4);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group_read<1>();
  for (uint32_t& word : s.words[0]) word = 1;
  ptx::cp_async_bulk_wait_group<0>();
  for (uint32_t& word : s.words[1]) word = 2;
}

// in: kReduceWords to begin with, then the operands. out: what the copy engine made of them in
// global memory.
template <void (*kReduce)(void*, const void*, uint32_t)>
TC_DEVICE void bulk_reduce(const Params& p) {
  BulkShared& s = static_shared<BulkShared>();
  copy_in(s.words[0], block_in(p), kReduceWords);
  copy_in(s.words[1], block_in(p) + kReduceWords, kReduceWords);
  ptx::fence_proxy_async();
  __syncwarp();
  if (threadIdx.x != 0) return;
  ptx::cp_async_bulk_store(block_out(p), s.words[0], kReduceWords * 4);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group<0>();
  kReduce(block_out(p), s.words[1], kReduceWords * 4);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group<0>();
}
TC_DEVICE void bulk_add_f32(const Params& p) { bulk_reduce<ptx::cp_reduce_async_bulk_add_f32>(p); }
TC_DEVICE void bulk_add_f16(const Params& p) { bulk_reduce<ptx::cp_reduce_async_bulk_add_f16>(p); }
TC_DEVICE void bulk_add_bf16(const Params& p) {
  bulk_reduce<ptx::cp_reduce_async_bulk_add_bf16>(p);
}
TC_DEVICE void bulk_add_u32(const Params& p) { bulk_reduce<ptx::cp_reduce_async_bulk_add_u32>(p); }
TC_DEVICE void bulk_add_u64(const Params& p) { bulk_reduce<ptx::cp_reduce_async_bulk_add_u64>(p); }
TC_DEVICE void bulk_min_s32(const Params& p) { bulk_reduce<ptx::cp_reduce_async_bulk_min_s32>(p); }
TC_DEVICE void bulk_max_s32(const Params& p) { bulk_reduce<ptx::cp_reduce_async_bulk_max_s32>(p); }

inline constexpr int kMulticastBlocks = 4, kMulticastWords = 64;

// in: to which blocks of the cluster each block sends, a mask each; kMulticastWords a block. out:
// by block, what came from each, zeros if nothing did.
TC_DEVICE void bulk_multicast(const Params& p) {
  BulkShared& s = static_shared<BulkShared>();
  const uint32_t rank = ptx::cluster_ctarank();
  const uint32_t* in = cluster_in<kMulticastBlocks>(p);
  clear(s.words[0], kBulkWords);
  ptx::fence_proxy_async();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&s.barrier, 1);
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_sync();
  if (threadIdx.x == 0) {
    uint32_t senders = 0;
    for (int i = 0; i < kMulticastBlocks; ++i) senders += in[i] >> rank & 1u;
    ptx::mbarrier_arrive_expect_tx(&s.barrier, senders * kMulticastWords * 4);
    ptx::cp_async_bulk_load_multicast(s.words[0] + rank * kMulticastWords,
                                      in + kMulticastBlocks + rank * kMulticastWords,
                                      kMulticastWords * 4, &s.barrier, uint16_t(in[rank]));
  }
  __syncwarp();
  ptx::mbarrier_wait_parity(&s.barrier, 0);
  for (int i = int(threadIdx.x); i < kBulkWords; i += 32)
    cluster_out<kMulticastBlocks>(p)[int(rank) * kBulkWords + i] = s.words[0][i];
  ptx::cluster_sync();
}

}  // namespace tensorcraft::test

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/device/cluster.cuh"
#include "tensorcraft/device/ptx/bulk.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tests/wrappers/kernels/params.h"

// Clusters of four blocks of a warp, 2 x 2 x 2 blocks in the first. `in` and `out` are a cluster's.
namespace tensorcraft::test {

inline constexpr int kClusterBlocks = 4, kIndexWords = 8, kClusterPhases = 3;

// out: by the block's place as the grid gives it, what the registers say.
TC_DEVICE void cluster_index(const Params& p) {
  if (threadIdx.x != 0) return;
  const uint32_t place = blockIdx.x % 2 + blockIdx.y * 2 + blockIdx.z * 4;
  uint32_t* out = cluster_out<2>(p) + place * kIndexWords;
  const ptx::ClusterIndex at = ptx::cluster_ctaid(), extent = ptx::cluster_nctaid();
  out[0] = at.x;
  out[1] = at.y;
  out[2] = at.z;
  out[3] = extent.x;
  out[4] = extent.y;
  out[5] = extent.z;
  out[6] = ptx::cluster_ctarank();
  out[7] = ptx::cluster_nctarank();
}

struct Exchange {
  uint32_t own[32], stored[32], mapped[32];
};

// in: 32 words a block. out: 4 x 32 a block: read from the next and the one after it in two ways,
// written by the one before and by the one across.
TC_DEVICE void cluster_exchange(const Params& p) {
  Exchange& s = static_shared<Exchange>();
  const uint32_t rank = ptx::cluster_ctarank(), lane = threadIdx.x;
  const uint32_t x = cluster_in<kClusterBlocks>(p)[rank * 32 + lane];
  uint32_t* out = cluster_out<kClusterBlocks>(p) + rank * 128 + lane;
  s.own[lane] = x;
  ptx::cluster_sync();
  out[0] = ptx::ld_shared_cluster_u32(&s.own[31 - lane], (rank + 1) % kClusterBlocks);
  out[32] = ptx::mapa(s.own, (rank + 2) % kClusterBlocks)[31 - lane];
  ptx::st_shared_cluster_u32(&s.stored[31 - lane], (rank + 1) % kClusterBlocks, x + 1);
  ptx::mapa(s.mapped, (rank + 2) % kClusterBlocks)[31 - lane] = x + 2;
  ptx::cluster_arrive();
  ptx::cluster_wait();
  out[64] = s.stored[lane];
  out[96] = s.mapped[lane];
}

// The first barrier orders no memory: it says that the blocks run.
TC_DEVICE void cluster_relaxed(const Params& p) {
  Exchange& s = static_shared<Exchange>();
  const uint32_t rank = ptx::cluster_ctarank(), lane = threadIdx.x;
  ptx::cluster_arrive_relaxed();
  ptx::cluster_wait();
  ptx::st_shared_cluster_u32(&s.stored[lane], kClusterBlocks - 1 - rank,
                             cluster_in<kClusterBlocks>(p)[rank * 32 + lane]);
  ptx::cluster_sync();
  cluster_out<kClusterBlocks>(p)[rank * 32 + lane] = s.stored[31 - lane];
}

// out: for each thread of each block the words of all blocks.
struct GatherShared {
  ClusterExchange<uint32_t> exchange;
};
TC_DEVICE void cluster_gather(const Params& p) {
  const uint32_t rank = ptx::cluster_ctarank();
  uint32_t all[kClusterBlocks];
  cluster_all_gather(static_shared<GatherShared>().exchange, cluster_in<kClusterBlocks>(p)[rank],
                     all);
  uint32_t* out = cluster_out<kClusterBlocks>(p) + (rank * 32 + threadIdx.x) * kClusterBlocks;
  for (int i = 0; i < kClusterBlocks; ++i) out[i] = all[i];
}

// Cells in block 1 that the threads of all blocks change. What is read of them does not depend on
// the order in which they come.
struct Cells {
  uint64_t sum64, cas64;
  uint32_t sum, smallest, largest, token, tokens, cas;
  int32_t least, most;
  float float_sum;
};
inline constexpr int kCellWords = 12;

TC_DEVICE void change_cells(Cells& c, uint32_t x) {
  atomic_add(&c.sum64, uint64_t(x) << 20);
  atomic_add(&c.sum, x);
  atomic_min(&c.smallest, x);
  atomic_max(&c.largest, x);
  atomic_min(&c.least, int32_t(x));
  atomic_max(&c.most, int32_t(x));
  atomic_add(&c.tokens, atomic_exchange(&c.token, x));
  for (;;) {
    const uint32_t old = atomic_add(&c.cas, 0u);
    if (atomic_cas(&c.cas, old, old + x) == old) break;
  }
  for (;;) {
    const uint64_t old = atomic_add(&c.cas64, uint64_t(0));
    if (atomic_cas(&c.cas64, old, old + x) == old) break;
  }
  // Small integers: exact in every order.
  const float small = float(int(x % 9) - 4);
  atomic_add(&c.float_sum, small);
}

TC_DEVICE void cluster_atomics(const Params& p) {
  Cells& own = static_shared<Cells>();
  const uint32_t rank = ptx::cluster_ctarank();
  if (threadIdx.x == 0) {
    own = {};
    own.smallest = 0xffffffffu;
  }
  ptx::cluster_sync();
  change_cells(*ptx::mapa(&own, 1), cluster_in<kClusterBlocks>(p)[rank * 32 + threadIdx.x]);
  ptx::cluster_sync();
  if (rank != 1 || threadIdx.x != 0) return;
  uint32_t* out = cluster_out<kClusterBlocks>(p);
  out[0] = uint32_t(own.sum64);
  out[1] = uint32_t(own.sum64 >> 32);
  out[2] = uint32_t(own.cas64);
  out[3] = uint32_t(own.cas64 >> 32);
  out[4] = own.sum;
  out[5] = own.smallest;
  out[6] = own.largest;
  out[7] = own.token + own.tokens;
  out[8] = own.cas;
  out[9] = uint32_t(own.least);
  out[10] = uint32_t(own.most);
  out[11] = bit_cast<uint32_t>(own.float_sum);
}

// The threads of block 0 add one after another to a float of block 1; in: its first value, 32
// floats; out: what it becomes, what each thread got.
struct RemoteFloat {
  float value;
};
TC_DEVICE void cluster_add_f32(const Params& p) {
  RemoteFloat& own = static_shared<RemoteFloat>();
  const uint32_t* in = cluster_in<kClusterBlocks>(p);
  const uint32_t rank = ptx::cluster_ctarank();
  if (threadIdx.x == 0) own.value = bit_cast<float>(in[0]);
  ptx::cluster_sync();
  float* const cell = ptx::mapa(&own.value, 1);
  const auto x = bit_cast<float>(in[1 + threadIdx.x]);
  for (unsigned turn = 0; rank == 0 && turn < 32; ++turn) {
    if (threadIdx.x == turn)
      cluster_out<kClusterBlocks>(p)[1 + turn] = bit_cast<uint32_t>(atomic_add(cell, x));
    __syncwarp();
  }
  ptx::cluster_sync();
  if (rank == 1 && threadIdx.x == 0)
    cluster_out<kClusterBlocks>(p)[0] = bit_cast<uint32_t>(own.value);
}

struct ClusterBarrierShared {
  alignas(16) uint32_t words[32], sent[32];
  uint64_t barrier;
};

TC_DEVICE void init_cluster_barrier(ClusterBarrierShared& s, uint32_t count) {
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&s.barrier, count);
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_sync();
}

// Every block arrives at every other's barrier, `in` says how often, and last at its own. out: a
// block's tests of both parities before and after its phases. No block begins a phase that another
// has not ended: arrivals beyond a phase's count are an error.
TC_DEVICE void mbarrier_cluster(const Params& p) {
  ClusterBarrierShared& s = static_shared<ClusterBarrierShared>();
  const uint32_t rank = ptx::cluster_ctarank();
  const uint32_t* counts = cluster_in<kClusterBlocks>(p);  // of arrivals, by the block that sends
  uint32_t all = 1;
  for (uint32_t i = 0; i < kClusterBlocks; ++i) all += i == rank ? 0 : counts[i];
  init_cluster_barrier(s, all);
  uint32_t* out = cluster_out<kClusterBlocks>(p) + rank * 2 * kClusterPhases;
  const auto arrive = [&](uint32_t parity, uint32_t to, uint32_t count) {
    if (parity == 0)
      ptx::mbarrier_arrive_cluster(&s.barrier, to, count);
    else
      ptx::mbarrier_arrive_cluster_read(&s.barrier, to, count);
  };
  for (uint32_t phase = 0; phase < kClusterPhases; ++phase) {
    const uint32_t parity = phase % 2;
    if (threadIdx.x == 0) {
      for (uint32_t i = 0; i < kClusterBlocks; ++i)
        if (i != rank) arrive(parity, i, counts[rank]);
      out[2 * phase] = uint32_t(ptx::mbarrier_test_wait_parity(&s.barrier, parity)) |
                       uint32_t(ptx::mbarrier_test_wait_parity(&s.barrier, parity ^ 1)) << 1;
      ptx::mbarrier_arrive_cluster(&s.barrier, rank);
      ptx::mbarrier_wait_parity(&s.barrier, parity);
      out[2 * phase + 1] = uint32_t(ptx::mbarrier_test_wait_parity(&s.barrier, parity)) |
                           uint32_t(ptx::mbarrier_test_wait_parity(&s.barrier, parity ^ 1)) << 1;
    }
    __syncwarp();
    ptx::cluster_sync();
  }
}

// A word from each thread of the block before, counted in bytes.
TC_DEVICE void st_async(const Params& p) {
  ClusterBarrierShared& s = static_shared<ClusterBarrierShared>();
  const uint32_t rank = ptx::cluster_ctarank(), lane = threadIdx.x;
  init_cluster_barrier(s, 1);
  if (lane == 0) ptx::mbarrier_arrive_expect_tx(&s.barrier, sizeof(s.words));
  ptx::st_async_u32(&s.words[31 - lane], cluster_in<kClusterBlocks>(p)[rank * 32 + lane],
                    &s.barrier, (rank + 1) % kClusterBlocks);
  ptx::mbarrier_wait_parity(&s.barrier, 0);
  cluster_out<kClusterBlocks>(p)[rank * 32 + lane] = s.words[lane];
  ptx::cluster_sync();
}

// The same by one copy of the copy engine.
TC_DEVICE void bulk_to_cluster(const Params& p) {
  ClusterBarrierShared& s = static_shared<ClusterBarrierShared>();
  const uint32_t rank = ptx::cluster_ctarank(), lane = threadIdx.x;
  s.sent[lane] = cluster_in<kClusterBlocks>(p)[rank * 32 + lane];
  ptx::fence_proxy_async();
  init_cluster_barrier(s, 1);
  if (lane == 0) {
    ptx::mbarrier_arrive_expect_tx(&s.barrier, sizeof(s.words));
    ptx::cp_async_bulk_to_cluster(s.words, s.sent, sizeof(s.words), &s.barrier,
                                  (rank + 1) % kClusterBlocks);
  }
  __syncwarp();
  ptx::mbarrier_wait_parity(&s.barrier, 0);
  cluster_out<kClusterBlocks>(p)[rank * 32 + lane] = s.words[31 - lane];
  ptx::cluster_sync();
}

}  // namespace tensorcraft::test

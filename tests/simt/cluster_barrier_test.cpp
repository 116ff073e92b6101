// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/ptx/bulk.cuh"
#include "tensorcraft/device/ptx/cluster.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tests/simt/kernels.hpp"

namespace tensorcraft::simt {
namespace {

using tensorcraft::static_shared;

struct Shared {
  alignas(16) uint32_t values[32], copied[32];
  uint64_t barrier;
};
Shared& shared() { return static_shared<Shared>(); }
uint32_t* out(const void* p) { return *static_cast<uint32_t* const*>(p); }

// Every block reads its right neighbour's numbers in two ways.
void rotate(const void* p) {
  Shared& s = shared();
  const uint32_t rank = ptx::cluster_ctarank(), right = (rank + 1) % ptx::cluster_nctarank();
  const ptx::ClusterIndex at = ptx::cluster_ctaid(), extent = ptx::cluster_nctaid();
  EXPECT_EQ(at.x + at.y * extent.x, rank);
  s.values[threadIdx.x] = 100 * (blockIdx.x + 10 * blockIdx.y) + threadIdx.x;
  ptx::cluster_sync();
  const uint32_t a = ptx::ld_shared_cluster_u32(&s.values[threadIdx.x], right);
  const uint32_t b = *ptx::mapa(&s.values[threadIdx.x], right);
  ptx::st_shared_cluster_u32(&s.copied[threadIdx.x], right, a + b);
  ptx::cluster_arrive();
  ptx::cluster_wait();
  const uint32_t block = blockIdx.x + gridDim.x * blockIdx.y;
  out(p)[32 * block + threadIdx.x] = s.copied[threadIdx.x];
}

TEST(SimtClusterBarrier, OrdersSharedMemoryOfAllBlocks) {
  for (const Options& o : timings(3)) {
    std::vector<uint32_t> all(8 * 32);
    uint32_t* data = all.data();
    run({.name = "rotate", .grid = {4, 2}, .block = {32}, .cluster = {2, 2}}, rotate, &data, o);
    for (uint32_t i = 0; i < all.size(); ++i) {
      const uint32_t x = i / 32 % 4, y = i / 128;
      EXPECT_EQ(all[i], 2 * (100 * (x + 10 * y) + i % 32));
    }
  }
}

// Block 0 sends to all: a multicast load, a copy from its shared memory, single words, an arrival.
void send(const void* p) {
  Shared& s = shared();
  const uint32_t rank = ptx::cluster_ctarank();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&s.barrier, 1 + 2 * (rank == 1));
    ptx::fence_mbarrier_init();
  }
  s.copied[threadIdx.x] = 7;
  ptx::fence_proxy_async();
  ptx::cluster_arrive_relaxed();
  ptx::cluster_wait();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(&s.barrier, rank == 1 ? 64 + 16 + 4 : 64);
    if (rank == 0) {
      ptx::cp_async_bulk_load_multicast(s.values, out(p), 64, &s.barrier, uint16_t(3));
      ptx::cp_async_bulk_to_cluster(s.values + 16, s.copied, 16, &s.barrier, 1);
      ptx::st_async_u32(&s.values[20], 9, &s.barrier, 1);
      ptx::mbarrier_arrive_cluster(&s.barrier, 1);
      ptx::mbarrier_arrive_cluster_read(&s.barrier, 1);
    }
  }
  ptx::mbarrier_wait_parity(&s.barrier, 0);
  out(p)[32 + 32 * rank + threadIdx.x] = s.values[threadIdx.x];
  ptx::cluster_sync();
}

TEST(SimtClusterBarrier, CopiesAndArrivalsReachOtherBlocks) {
  if (kRaceBuild) GTEST_SKIP() << kSooner;
  for (const Options& o : timings()) {
    alignas(16) uint32_t all[96];
    for (uint32_t i = 0; i < 96; ++i) all[i] = i + 1;
    uint32_t* data = all;
    run({.name = "send", .grid = {2}, .block = {32}, .cluster = {2}}, send, &data, o);
    for (uint32_t i = 0; i < 32; ++i) {
      EXPECT_EQ(all[32 + i], i < 16 ? i + 1 : ~0u);
      EXPECT_EQ(all[64 + i], i < 16 ? i + 1 : i < 20 ? 7 : i == 20 ? 9 : ~0u);
    }
  }
}

std::string text(Body body) { return fault_of({.grid = {2}, .block = {32}, .cluster = {2}}, body); }

TEST(SimtClusterBarrier, ReportsMisuse) {
  expect_fault(text([](const void*) { ptx::cluster_wait(); }),
               "barrier.cluster.wait: the thread has not arrived");
  expect_fault(text([](const void*) {
                 ptx::cluster_arrive();
                 ptx::cluster_arrive();
               }),
               "barrier.cluster.arrive: the thread arrives again without barrier.cluster.wait");
  expect_fault(text([](const void*) { ptx::mapa(shared().values, 1 - ptx::cluster_ctarank()); }),
               "mapa: reaches into block 1 before a cluster barrier has shown that it runs");
  expect_fault(text([](const void*) { ptx::mapa(shared().values, 2); }),
               "mapa: block 2 of a cluster of 2");
  expect_fault(text([](const void*) {
                 ptx::cluster_sync();
                 if (ptx::cluster_ctarank() == 0) return;
                 __syncthreads();
                 ptx::ld_shared_cluster_u32(shared().values, 0);
               }),
               "ld.shared::cluster: reaches into block 0 of the cluster, which has exited");
  expect_fault(text([](const void*) {
                 if (threadIdx.x == 0 && ptx::cluster_ctarank() == 1) {
                   ptx::cluster_arrive();
                   ptx::cluster_wait();
                   ptx::cluster_sync();
                 }
                 if (ptx::cluster_ctarank() == 0) {
                   ptx::cluster_sync();
                   __syncthreads();
                   ptx::mbarrier_init(&shared().barrier, 1);
                   ptx::mbarrier_wait_parity(&shared().barrier, 0);
                 }
               }),
               "initialised again");
}

TEST(SimtClusterBarrier, DoesNotWaitForThreadsThatExited) {
  EXPECT_EQ(text([](const void*) {
              if (threadIdx.x % 2 == 0) return;
              ptx::cluster_sync();
              if (threadIdx.x % 4 == 1) return;
              ptx::cluster_sync();
              ptx::cluster_sync();
            }),
            "no fault");
}

}  // namespace
}  // namespace tensorcraft::simt

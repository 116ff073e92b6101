// SPDX-License-Identifier: Apache-2.0
// Faults around wgmma and clusters.
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/device/ptx/cluster.cuh"
#include "tensorcraft/device/ptx/cvta.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/wgmma.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tests/simt/faults/fault.hpp"

namespace tensorcraft::test {
namespace {

constexpr Wgmma kOp{.n = 8};
struct alignas(1024) Operands {
  uint16_t a[64 * 16], b[8 * 16];
};

// Which step of the sequence is left out, or comes too early.
enum class Step { none, proxy_fence, fence, wait, operand_in_use };

// All ones, 16 along k: every element of D is 16.
template <Step fault>
void multiply(const FaultParams& p) {
  Operands& s = static_shared<Operands>();
  for (unsigned i = threadIdx.x; i < 64 * 16; i += 128) s.a[i] = 0x3f80;
  s.b[threadIdx.x] = 0x3f80;
  if (fault != Step::proxy_fence) ptx::fence_proxy_async();
  __syncthreads();
  const auto operand = [](const void* tile) {
    return wgmma_descriptor({.address = ptx::cvta_to_shared(tile), .leading = 128, .stride = 256});
  };
  float d[4] = {};
  if (fault != Step::fence) ptx::wgmma_fence();
  ptx::wgmma_mma_async<kOp>(d, operand(s.a), operand(s.b), false);
  ptx::wgmma_commit_group();
  if (fault == Step::operand_in_use) s.b[threadIdx.x] = 0;
  if (fault == Step::wait) p.out[threadIdx.x] = d[0] + d[3];
  ptx::wgmma_wait_group<0>();
  if (fault != Step::wait) p.out[threadIdx.x] = d[0] + d[3];
}

template <Step step>
void wgmma(const FaultParams& p, bool fault) {
  fault ? multiply<step>(p) : multiply<Step::none>(p);
}

struct Word {
  uint32_t value;
};

void peer_exits_early(const FaultParams& p, bool fault) {
  Word& word = static_shared<Word>();
  const uint32_t rank = ptx::cluster_ctarank();
  if (threadIdx.x == 0) word.value = rank + 5;
  ptx::cluster_sync();
  if (fault && rank == 1) return;
  if (fault) ptx::cluster_sync();  // those that have exited are not waited for
  const uint32_t other = ptx::ld_shared_cluster_u32(&word.value, rank ^ 1);
  if (!fault) ptx::cluster_sync();
  p.out[rank * 32 + threadIdx.x] = float(other);
}

void peer_not_started(const FaultParams& p, bool fault) {
  Word& word = static_shared<Word>();
  const uint32_t rank = ptx::cluster_ctarank();
  if (threadIdx.x == 0) word.value = rank + 5;
  if (!fault) ptx::cluster_sync();
  const uint32_t other = ptx::ld_shared_cluster_u32(&word.value, rank ^ 1);
  ptx::cluster_sync();
  p.out[rank * 32 + threadIdx.x] = float(other);
}

// A value sent to the other block, read with no barrier between.
void cluster_race(const FaultParams& p, bool fault) {
  struct Mail {
    uint32_t box[32];
  };
  Mail& mail = static_shared<Mail>();
  const uint32_t rank = ptx::cluster_ctarank();
  ptx::cluster_sync();
  ptx::st_shared_cluster_u32(&mail.box[threadIdx.x], rank ^ 1, rank + 5);
  if (!fault) ptx::cluster_sync();
  p.out[rank * 32 + threadIdx.x] = float(mail.box[threadIdx.x]);
  ptx::cluster_sync();
}

// Sums of pairs, which the hardware has not.
void remote_pairs(const FaultParams& p, bool fault) {
  struct Cell {
    Vec2<f16> sum;
  };
  Cell& own = static_shared<Cell>();
  if (threadIdx.x == 0) own.sum = {};
  ptx::cluster_sync();
  atomic_add(fault ? &ptx::mapa(&own, ptx::cluster_ctarank() ^ 1)->sum : &own.sum,
             {f16(1.0f), f16(2.0f)});
  ptx::cluster_sync();
  p.out[ptx::cluster_ctarank()] = float(own.sum[1]);
}

}  // namespace

std::span<const Fault> hopper_faults() {
  static const Fault faults[] = {
      {.name = "accumulators used before the wgmma wait",
       .pattern = "wgmma",
       .kernel = wgmma<Step::wait>,
       .block = {128},
       .any = "wrong result"},
      {.name = "missing wgmma.fence",
       .pattern = "wgmma",
       .kernel = wgmma<Step::fence>,
       .block = {128},
       .any = "no wgmma.fence"},
      {.name = "operands written and not fenced",
       .pattern = "wgmma",
       .kernel = wgmma<Step::proxy_fence>,
       .block = {128},
       .any = "without a fence.proxy.async",
       .race = "missing fence.proxy.async"},
      {.name = "operand overwritten while in use",
       .pattern = "wgmma",
       .kernel = wgmma<Step::operand_in_use>,
       .block = {128},
       .any = "changed between the issue and wgmma.wait_group",
       .race = "still reads; wait for it first"},
      {.name = "cluster peer exits early",
       .pattern = "distributed shared memory",
       .kernel = peer_exits_early,
       .cluster = {2},
       .any = "of the cluster, which has exited"},
      {.name = "cluster peer not known to run",
       .pattern = "distributed shared memory",
       .kernel = peer_not_started,
       .cluster = {2},
       .any = "before a cluster barrier has shown that it runs"},
      {.name = "missing cluster barrier",
       .pattern = "distributed shared memory",
       .kernel = cluster_race,
       .cluster = {2},
       .any = "wrong result",
       .race = "which was never written"},
      {.name = "pairs added in another block",
       .pattern = "distributed shared memory",
       .kernel = remote_pairs,
       .cluster = {2},
       .any = "pairs are not added in another block's shared memory"},
  };
  return faults;
}

}  // namespace tensorcraft::test

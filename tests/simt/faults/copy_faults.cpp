// SPDX-License-Identifier: Apache-2.0
// Faults around cp.async and bulk copies.
#include "tensorcraft/device/ptx/bulk.cuh"
#include "tensorcraft/device/ptx/cp_async.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/ptx/tma.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/swizzle.cuh"
#include "tests/simt/faults/fault.hpp"

namespace tensorcraft::test {
namespace {

struct alignas(1024) Stages {
  float values[2][256];
  uint64_t full[2], empty[2];
};

// Each of 64 threads copies 4 floats of tile `step`.
void copy_tile(float* stage, const FaultParams& p, int step) {
  const unsigned i = threadIdx.x * 4;
  ptx::cp_async_cg_16(stage + i, p.in + step * 256 + i, 16);
}

// Both stages are under way; the first is read.
template <bool commits, int pending>
void two_stages(const FaultParams& p) {
  Stages& s = static_shared<Stages>();
  for (int step = 0; step < 2; ++step) {
    copy_tile(s.values[step], p, step);
    if (commits) ptx::cp_async_commit_group();
  }
  if (pending >= 0) ptx::cp_async_wait_group < pending<0 ? 0 : pending>();
  __syncthreads();
  p.out[threadIdx.x] = s.values[0][255 - threadIdx.x];
}

void missing_wait_group(const FaultParams& p, bool fault) {
  fault ? two_stages<true, -1>(p) : two_stages<true, 0>(p);
}
void wait_one_short(const FaultParams& p, bool fault) {
  fault ? two_stages<true, 2>(p) : two_stages<true, 1>(p);
}
void missing_commit(const FaultParams& p, bool fault) {
  fault ? two_stages<false, 0>(p) : two_stages<true, 0>(p);
}

// A copy into the stage that a slower warp still reads.
void copy_into_read_stage(const FaultParams& p, bool fault) {
  Stages& s = static_shared<Stages>();
  copy_tile(s.values[0], p, 0);
  ptx::cp_async_commit_group();
  float sum = 0;
  for (int step = 0; step < 3; ++step) {
    ptx::cp_async_wait_group<0>();
    __syncthreads();
    copy_tile(s.values[fault ? step % 2 : (step + 1) % 2], p, step + 1);
    ptx::cp_async_commit_group();
    sum += s.values[step % 2][255 - threadIdx.x];
  }
  ptx::cp_async_wait_group<0>();
  p.out[threadIdx.x] = sum;
}

// One thread makes `full[0]` and loads the first stage; the rest of the block waits.
void begin_load(Stages& s, const FaultParams& p, uint32_t arrivals, uint32_t bytes, bool fence) {
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&s.full[0], arrivals);
    if (fence) ptx::fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(&s.full[0], bytes);
    ptx::cp_async_bulk_load(s.values[0], p.in, 1024, &s.full[0]);
  }
}
void read_loaded(Stages& s, const FaultParams& p, uint32_t parity) {
  ptx::mbarrier_wait_parity(&s.full[0], parity);
  p.out[threadIdx.x] = s.values[0][255 - threadIdx.x];
}

void wrong_phase(const FaultParams& p, bool fault) {
  Stages& s = static_shared<Stages>();
  begin_load(s, p, 1, 1024, true);
  read_loaded(s, p, fault ? 1 : 0);
}
void wrong_expect_tx(const FaultParams& p, bool fault) {
  Stages& s = static_shared<Stages>();
  begin_load(s, p, 1, fault ? 1280 : 1024, true);
  read_loaded(s, p, 0);
}
void arrivals_too_few(const FaultParams& p, bool fault) {
  Stages& s = static_shared<Stages>();
  begin_load(s, p, fault ? 2 : 1, 1024, true);
  read_loaded(s, p, 0);
}
void barrier_not_fenced(const FaultParams& p, bool fault) {
  Stages& s = static_shared<Stages>();
  begin_load(s, p, 1, 1024, !fault);
  read_loaded(s, p, 0);
}

// Two warps fill a stage with ordinary stores; each arrives once.
void double_arrive(const FaultParams& p, bool fault) {
  Stages& s = static_shared<Stages>();
  if (threadIdx.x == 0) ptx::mbarrier_init(&s.full[0], 2);
  __syncthreads();
  const unsigned warp = threadIdx.x / 32;
  if (warp < 2) {
    s.values[0][threadIdx.x] = p.in[threadIdx.x];
    __syncwarp();
    if (threadIdx.x == 0) ptx::mbarrier_arrive(&s.full[0], fault ? 2 : 1);
    if (threadIdx.x == 32) ptx::mbarrier_arrive(&s.full[0]);
  } else {
    ptx::mbarrier_wait_parity(&s.full[0], 0);
    p.out[threadIdx.x] = s.values[0][threadIdx.x - 64] + s.values[0][threadIdx.x - 32];
  }
}

void arrive_too_often(const FaultParams& p, bool fault) {
  Stages& s = static_shared<Stages>();
  if (threadIdx.x == 0) ptx::mbarrier_init(&s.full[0], 64);
  __syncthreads();
  ptx::mbarrier_arrive(&s.full[0], fault ? 40 : 1);
  ptx::mbarrier_wait_parity(&s.full[0], 0);
  p.out[threadIdx.x] = p.in[threadIdx.x];
}

// A producer warp refills the only stage; the consumer says when it has read it.
void reuse_before_empty(const FaultParams& p, bool fault) {
  Stages& s = static_shared<Stages>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&s.full[0], 1);
    ptx::mbarrier_init(&s.empty[0], 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 32) {
    for (uint32_t step = 0; step < 3; ++step) {
      if (!fault) ptx::mbarrier_wait_parity(&s.empty[0], step % 2 ^ 1);
      ptx::mbarrier_arrive_expect_tx(&s.full[0], 1024);
      ptx::cp_async_bulk_load(s.values[0], p.in + step * 256, 1024, &s.full[0]);
      if (fault) ptx::mbarrier_wait_parity(&s.full[0], step % 2);
    }
  } else if (threadIdx.x < 32) {
    float sum = 0;
    for (uint32_t step = 0; step < 3; ++step) {
      ptx::mbarrier_wait_parity(&s.full[0], step % 2);
      sum += s.values[0][255 - threadIdx.x];
      __syncwarp();
      if (threadIdx.x == 0) ptx::mbarrier_arrive(&s.empty[0]);
    }
    p.out[threadIdx.x] = sum;
  }
}

// The tile leaves through the copy engine.
template <bool fenced, bool waits>
void store_tile(const FaultParams& p) {
  Stages& s = static_shared<Stages>();
  for (unsigned i = threadIdx.x; i < 256; i += 64) s.values[0][i] = 2 * p.in[i];
  if (fenced) ptx::fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_store(p.out, s.values[0], 1024);
    ptx::cp_async_bulk_commit_group();
    if (waits) ptx::cp_async_bulk_wait_group_read<0>();
    s.values[0][0] = 0;  // the next tile
    ptx::cp_async_bulk_wait_group<0>();
  }
}
void missing_proxy_fence(const FaultParams& p, bool fault) {
  fault ? store_tile<false, true>(p) : store_tile<true, true>(p);
}
void source_reused(const FaultParams& p, bool fault) {
  fault ? store_tile<true, false>(p) : store_tile<true, true>(p);
}

// A box of 8 rows of 128 bytes; a reader that knows of no swizzle finds other columns.
void wrong_swizzle(const FaultParams& p, bool fault) {
  Stages& s = static_shared<Stages>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&s.full[0], 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(&s.full[0], 1024);
    const int32_t at[2] = {0, 8};
    ptx::tma_load(s.values[0], &p.map, at, &s.full[0]);
  }
  ptx::mbarrier_wait_parity(&s.full[0], 0);
  for (uint32_t i = threadIdx.x; i < 256; i += 64) {
    const uint32_t byte = fault ? i * 4 : swizzled(Swizzle::bytes_128, i * 4);
    p.out[i] = s.values[0][byte / 4];
  }
}

}  // namespace

std::span<const Fault> copy_faults() {
  static constexpr char kUndelivered[] = "has not delivered yet; wait for it first",
                        kUnwritten[] = "which was never written", kRace[] = "race: this thread",
                        kWrong[] = "wrong result", kDeadlock[] = "deadlock: every thread waits";
  static const Fault faults[] = {
      {.name = "missing wait_group",
       .pattern = "cp.async",
       .kernel = missing_wait_group,
       .block = {64},
       .any = kWrong,
       .race = kUndelivered},
      {.name = "wait_group that leaves one too many",
       .pattern = "cp.async ring",
       .kernel = wait_one_short,
       .block = {64},
       .any = kWrong,
       .race = kUndelivered},
      {.name = "missing commit",
       .pattern = "cp.async",
       .kernel = missing_commit,
       .block = {64},
       .any = kWrong,
       .race = kUndelivered},
      {.name = "copy into the stage being read",
       .pattern = "cp.async ring",
       .kernel = copy_into_read_stage,
       .block = {64},
       .any = kWrong,
       .race = kRace},
      {.name = "wrong phase",
       .pattern = "mbarrier and bulk copy",
       .kernel = wrong_phase,
       .block = {64},
       .any = "exits while 1024 bytes are on their way into its shared memory",
       .race = kUnwritten},
      {.name = "wrong expect_tx bytes",
       .pattern = "mbarrier and bulk copy",
       .kernel = wrong_expect_tx,
       .block = {64},
       .any = kDeadlock},
      {.name = "arrivals too few",
       .pattern = "mbarrier and bulk copy",
       .kernel = arrivals_too_few,
       .block = {64},
       .any = kDeadlock},
      {.name = "barrier not fenced after its initialisation",
       .pattern = "mbarrier",
       .kernel = barrier_not_fenced,
       .block = {64},
       .any = "was initialised and not fenced"},
      {.name = "double arrive",
       .pattern = "producer warps",
       .kernel = double_arrive,
       .block = {96},
       .race = "race: this thread reads shared memory"},
      {.name = "arrivals beyond the count",
       .pattern = "mbarrier",
       .kernel = arrive_too_often,
       .block = {64},
       .any = "40 arrivals at the barrier"},
      {.name = "stage reused before its empty barrier",
       .pattern = "producer and consumer",
       .kernel = reuse_before_empty,
       .block = {64},
       .race = kRace},
      {.name = "missing proxy fence",
       .pattern = "bulk store",
       .kernel = missing_proxy_fence,
       .block = {64},
       .any = "without a fence.proxy.async"},
      {.name = "source reused before it is read",
       .pattern = "bulk store",
       .kernel = source_reused,
       .block = {64},
       .any = "changed between the issue and the wait",
       .race = "still reads; wait for it first"},
      {.name = "wrong swizzle",
       .pattern = "TMA box",
       .kernel = wrong_swizzle,
       .block = {64},
       .any = kWrong},
  };
  return faults;
}

}  // namespace tensorcraft::test

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/ptx/bulk.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tests/simt/kernels.hpp"

#include <numeric>

namespace tensorcraft::simt {
namespace {

using tensorcraft::static_shared;

constexpr int kCount = 64;
struct Shared {
  alignas(128) int in[kCount], out[kCount];
  uint64_t barrier, other;
};
struct Params {
  const int* in;
  int* out;
};
struct Data {
  alignas(16) int in[kCount];
  alignas(16) int out[4 * kCount] = {};
  Params p{in, out};
  Data() { std::iota(in, in + kCount, 100); }
};
const Params& params(const void* p) { return *static_cast<const Params*>(p); }
Shared& shared() { return static_shared<Shared>(); }
constexpr uint32_t kBytes = sizeof(Shared::in);

void init() {
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared().barrier, 1);
    ptx::mbarrier_init(&shared().other, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
}
void load(const void* p, uint64_t* barrier) {
  if (threadIdx.x != 0) return;
  ptx::mbarrier_arrive_expect_tx(barrier, kBytes);
  ptx::cp_async_bulk_load(shared().in, params(p).in, kBytes, barrier);
}

// in to shared memory, doubled, to out.
void doubled(const void* p) {
  Shared& s = shared();
  init();
  load(p, &s.barrier);
  ptx::mbarrier_wait_parity(&s.barrier, 0);
  for (int i = int(threadIdx.x); i < kCount; i += 32) s.out[i] = 2 * s.in[i];
  ptx::fence_proxy_async();
  __syncthreads();
  if (threadIdx.x != 0) return;
  ptx::cp_async_bulk_store(params(p).out, s.out, kBytes);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_reduce_async_bulk_add_u32(params(p).out + kCount, s.out, kBytes);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group_read<1>();
  ptx::cp_async_bulk_wait_group<0>();
  params(p).out[2 * kCount] = params(p).out[1];
}

TEST(SimtBulk, LoadsStoresAndReducesAtEveryTiming) {
  for (const Options& o : timings()) {
    Data d;
    run({.name = "doubled", .block = {32}}, doubled, &d.p, o);
    for (int i = 0; i < kCount; ++i) {
      EXPECT_EQ(d.out[i], 2 * (100 + i));
      EXPECT_EQ(d.out[kCount + i], 2 * (100 + i));
    }
    EXPECT_EQ(d.out[2 * kCount], 202);
  }
}

std::string text(Body body, const Options& options = {}) {
  Data d;
  return fault_of({.block = {32}}, body, &d.p, options);
}

int first(Body body) {
  Data d;
  run({.name = "k", .block = {32}}, body, &d.p, {});
  return d.out[0];
}

TEST(SimtBulk, ShowsALoadReadBeforeItsBarrierOrBehindAnother) {
  if (kRaceBuild) GTEST_SKIP() << kSooner;
  EXPECT_EQ(first([](const void* p) {
              init();
              load(p, &shared().barrier);
              if (threadIdx.x == 0) params(p).out[0] = shared().in[0];
              ptx::mbarrier_wait_parity(&shared().barrier, 0);
            }),
            -1);
  EXPECT_EQ(first([](const void* p) {
              init();
              load(p, &shared().barrier);
              if (threadIdx.x == 0) ptx::mbarrier_arrive(&shared().other);
              ptx::mbarrier_wait_parity(&shared().other, 0);
              if (threadIdx.x == 0) params(p).out[0] = shared().in[0];
              ptx::mbarrier_wait_parity(&shared().barrier, 0);
            }),
            -1);
  // The parity of the phase before lets everybody through at once.
  EXPECT_EQ(first([](const void* p) {
              init();
              load(p, &shared().barrier);
              ptx::mbarrier_wait_parity(&shared().barrier, 1);
              if (threadIdx.x == 0) params(p).out[0] = shared().in[0];
              ptx::mbarrier_wait_parity(&shared().barrier, 0);
            }),
            -1);
}

TEST(SimtBulk, ReportsAStoreWithoutItsFenceAtEveryTiming) {
  for (const Options& o : timings(2))
    expect_fault(text(
                     [](const void* p) {
                       shared().out[threadIdx.x] = 1;
                       __syncthreads();
                       if (threadIdx.x == 0)
                         ptx::cp_async_bulk_store(params(p).out, shared().out, kBytes);
                     },
                     o),
                 "thread (0, 0, 0): cp.async.bulk.global.shared::cta: reads byte ");
}

TEST(SimtBulk, ReportsASourceThatChangesOrIsLeftUnread) {
  if (kRaceBuild) GTEST_SKIP() << kSooner;
  const Body changed = [](const void* p) {
    if (threadIdx.x != 0) return;
    ptx::cp_async_bulk_store(params(p).out, shared().out, kBytes);
    ptx::cp_async_bulk_commit_group();
    shared().out[3] = 5;
    ptx::cp_async_bulk_wait_group_read<0>();
  };
  expect_fault(text(changed), "its source in shared memory changed between the issue and the wait");
  EXPECT_EQ(text(changed, {.timing = Timing::as_early_as_possible}), "no fault");
  expect_fault(text([](const void* p) {
                 ptx::cp_async_bulk_store(params(p).out, shared().out, kBytes);
                 ptx::cp_async_bulk_commit_group();
               }),
               "cp.async.bulk.wait_group.read is missing");
  // Not committed, so the wait does not cover it.
  expect_fault(text([](const void* p) {
                 ptx::cp_async_bulk_store(params(p).out, shared().out, kBytes);
                 ptx::cp_async_bulk_wait_group_read<0>();
               }),
               "cp.async.bulk.wait_group.read is missing");
}

TEST(SimtBulk, ReportsALoadThatNobodyWaitsForOrThatMeetsAnother) {
  if (kRaceBuild) GTEST_SKIP() << kSooner;
  expect_fault(
      text([](const void* p) {
        init();
        load(p, &shared().barrier);
      }),
      "cp.async.bulk.shared::cluster.global: block 0 of the cluster exits while 256 bytes");
  expect_fault(text([](const void* p) {
                 init();
                 load(p, &shared().barrier);
                 if (threadIdx.x == 0) shared().in[5] = 1;
                 ptx::mbarrier_wait_parity(&shared().barrier, 0);
               }),
               "its destination was written while the copy was under way");
}

TEST(SimtBulk, ReportsWhatTheHardwareCannotCopy) {
  expect_fault(text([](const void* p) {
                 init();
                 ptx::cp_async_bulk_load(shared().in, params(p).in, 20, &shared().barrier);
               }),
               "copies multiples of 16 bytes, not 20");
  expect_fault(text([](const void* p) {
                 init();
                 ptx::cp_async_bulk_load(shared().in + 1, params(p).in, 16, &shared().barrier);
               }),
               "the destination is not a multiple of 16 bytes");
  expect_fault(text([](const void* p) {
                 init();
                 ptx::cp_async_bulk_load(params(p).out, params(p).in, 16, &shared().barrier);
               }),
               "(1 bytes) is not in shared memory");
}

}  // namespace
}  // namespace tensorcraft::simt

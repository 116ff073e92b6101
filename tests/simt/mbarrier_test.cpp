// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/ptx/bulk.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tests/simt/kernels.hpp"

namespace tensorcraft::simt {
namespace {

using tensorcraft::static_shared;

struct Shared {
  uint64_t full, empty, other;
  int value;
  alignas(16) char bytes[64];
};

// A producer and a consumer pass 10 numbers through one place.
void ping_pong(const void* p) {
  Shared& s = static_shared<Shared>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&s.full, 1);
    ptx::mbarrier_init(&s.empty, 31);
  }
  __syncthreads();
  int* const out = *static_cast<int* const*>(p);
  for (uint32_t i = 0; i < 10; ++i) {
    if (threadIdx.x == 0) {
      ptx::mbarrier_wait_parity(&s.empty, i % 2 ^ 1);
      s.value = int(i) * 3;
      ptx::mbarrier_arrive(&s.full);
    } else {
      while (!ptx::mbarrier_test_wait_parity(&s.full, i % 2)) {
      }
      out[i * 32 + threadIdx.x] = s.value;
      ptx::mbarrier_arrive(&s.empty);
    }
  }
}

TEST(SimtMbarrier, PassesValuesThroughPhases) {
  for (const Options& o : timings(3)) {
    std::vector<int> out(320, -1);
    int* data = out.data();
    run({.name = "ping_pong", .block = {32}}, ping_pong, &data, o);
    for (int i = 0; i < 320; ++i) EXPECT_EQ(out[size_t(i)], i % 32 == 0 ? -1 : i / 32 * 3);
  }
}

std::string text(Body body) { return fault_of({.block = {1}}, body); }
Shared& shared() { return static_shared<Shared>(); }

TEST(SimtMbarrier, ReportsAWrongCount) {
  expect_fault(text([](const void*) { ptx::mbarrier_init(&shared().full, 0); }),
               "block (0, 0, 0), thread (0, 0, 0): mbarrier.init: the count must be in [1, 2^20");
  expect_fault(text([](const void*) {
                 ptx::mbarrier_init(&shared().full, 2);
                 ptx::mbarrier_arrive(&shared().full, 3);
               }),
               "mbarrier.arrive: 3 arrivals at the barrier at byte");
  expect_fault(text([](const void*) {
                 ptx::mbarrier_init(&shared().full, 1);
                 ptx::mbarrier_arrive_expect_tx(&shared().full, 16);
                 ptx::mbarrier_arrive(&shared().full);
               }),
               "where phase 0 still waits for 0 of 1");
}

TEST(SimtMbarrier, ReportsUseWithoutInitialisationAndTwice) {
  expect_fault(text([](const void*) { ptx::mbarrier_wait_parity(&shared().full, 0); }),
               "mbarrier.try_wait: there is no initialised barrier at byte");
  expect_fault(text([](const void*) {
                 ptx::mbarrier_init(&shared().full, 1);
                 ptx::mbarrier_init(&shared().full, 1);
               }),
               "is initialised again without mbarrier.inval");
  EXPECT_EQ(text([](const void*) {
              ptx::mbarrier_init(&shared().full, 1);
              ptx::mbarrier_inval(&shared().full);
              ptx::mbarrier_init(&shared().full, 1);
            }),
            "no fault");
  expect_fault(text([](const void*) {
                 ptx::mbarrier_init(&shared().full, 1);
                 shared().full = 0;
                 ptx::mbarrier_arrive(&shared().full);
               }),
               "was overwritten by an ordinary store");
}

TEST(SimtMbarrier, ReportsTooManyBytesAndABarrierTheCopyEngineMayNotSee) {
  expect_fault(text([](const void*) {
                 ptx::mbarrier_init(&shared().full, 1);
                 ptx::mbarrier_expect_tx(&shared().full, 1u << 20);
               }),
               "mbarrier.expect_tx: the barrier at byte");
  alignas(16) static char in[16];
  expect_fault(text([](const void*) {
                 ptx::mbarrier_init(&shared().full, 1);
                 ptx::cp_async_bulk_load(shared().bytes, in, 16, &shared().full);
               }),
               "was initialised and not fenced");
  EXPECT_EQ(text([](const void*) {
              ptx::mbarrier_init(&shared().full, 1);
              ptx::fence_mbarrier_init();
              ptx::cp_async_bulk_load(shared().bytes, in, 16, &shared().full);
              ptx::mbarrier_arrive_expect_tx(&shared().full, 16);
              ptx::mbarrier_wait_parity(&shared().full, 0);
            }),
            "no fault");
}

TEST(SimtMbarrier, ReportsADeadlockWithTheStateOfThePhase) {
  const Body body = [](const void*) {
    ptx::mbarrier_init(&shared().full, 2);
    ptx::mbarrier_arrive_expect_tx(&shared().full, 48);
    ptx::mbarrier_wait_parity(&shared().full, 0);
  };
  expect_fault(text(body),
               "deadlock: every thread waits\n  from block (0, 0, 0), thread (0, 0, 0): "
               "mbarrier.try_wait");
  expect_fault(text(body), "phase 0 waits for 1 of 2 arrivals and 48 bytes");
  expect_fault(text([](const void*) {
                 ptx::mbarrier_init(&shared().full, 1);
                 while (!ptx::mbarrier_test_wait_parity(&shared().full, 0)) {
                 }
               }),
               "mbarrier.test_wait");
}

}  // namespace
}  // namespace tensorcraft::simt

// SPDX-License-Identifier: Apache-2.0
// Shared memory as the async proxy sees it; what reads through it is in bulk_test and wgmma_test.
#include "tensorcraft/device/ptx/bulk.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tests/simt/kernels.hpp"

namespace tensorcraft::simt {
namespace {

using tensorcraft::dynamic_shared;
using tensorcraft::static_shared;

struct Shared {
  alignas(16) int values[8];
  uint64_t barrier;
};
struct Other {
  alignas(16) int values[8];
};
struct Data {
  alignas(16) int in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {};
};
Data& data(const void* p) { return **static_cast<Data* const*>(p); }

void store(const void* p, const int* from) {
  ptx::cp_async_bulk_store(data(p).out, from, 32);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group<0>();
}

std::string text(Body body) {
  Data d;
  Data* const p = &d;
  return fault_of({.block = {1}, .shared_bytes = sizeof(Other)}, body, &p);
}

TEST(SimtProxy, KnowsWhatAFenceShowedOrACopyWrote) {
  if (kRaceBuild) GTEST_SKIP() << kSooner;
  EXPECT_EQ(text([](const void* p) {
              dynamic_shared<Other>().values[2] = 1;
              static_shared<Shared>().values[2] = 1;
              ptx::fence_proxy_async();
              store(p, dynamic_shared<Other>().values);
              store(p, static_shared<Shared>().values);
            }),
            "no fault");
  EXPECT_EQ(text([](const void* p) {
              Shared& s = static_shared<Shared>();
              ptx::mbarrier_init(&s.barrier, 1);
              ptx::fence_mbarrier_init();
              ptx::mbarrier_arrive_expect_tx(&s.barrier, 32);
              ptx::cp_async_bulk_load(s.values, data(p).in, 32, &s.barrier);
              ptx::mbarrier_wait_parity(&s.barrier, 0);
              store(p, s.values);
            }),
            "no fault");
}

TEST(SimtProxy, ReportsAStoreBehindTheFence) {
  expect_fault(text([](const void* p) {
                 ptx::fence_proxy_async();
                 dynamic_shared<Other>().values[3] = 1;
                 store(p, dynamic_shared<Other>().values);
               }),
               "block (0, 0, 0), thread (0, 0, 0): cp.async.bulk.global.shared::cta: reads byte 12 "
               "of shared memory, which a thread wrote without a fence.proxy.async after it");
}

}  // namespace
}  // namespace tensorcraft::simt

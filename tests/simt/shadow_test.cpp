// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/shadow.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/simt/launch.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tensorcraft::simt {
namespace {

using tensorcraft::static_shared;  // what a kernel calls, not its hook

struct Values {
  float values[256];
  BlockReduce<float> scratch;
  unsigned char bytes[64];
};

class SimtShadow : public ::testing::Test {
  void SetUp() override {
    if (!kRaceBuild) GTEST_SKIP() << "the shadow exists in the race build";
  }
};

std::string fault_of(Body body) {
  try {
    launch({.name = "k", .grid = {2}, .block = {256}}, body, nullptr);
  } catch (const Error& e) {
    return e.what();
  }
  return "no fault";
}

void expect_fault(Body body, const char* text) {
  const std::string fault = fault_of(body);
  EXPECT_NE(fault.find(text), std::string::npos) << fault;
  EXPECT_NE(fault.find("shadow_test.cpp:"), std::string::npos) << fault;
}

enum Fault { kNone, kNoBarrierAfterWrite, kNoBarrierBeforeWrite, kOverlap, kStale };

template <int fault>
void exchange(const void*) {
  Values& s = static_shared<Values>();
  s.values[threadIdx.x] = float(threadIdx.x);
  if (fault != kNoBarrierAfterWrite) __syncthreads();
  volatile float x = s.values[threadIdx.x ^ 1u];
  if (fault == kStale) x = s.values[threadIdx.x] + s.scratch.parts[0];
  if (fault != kNoBarrierBeforeWrite) __syncthreads();
  s.values[fault == kOverlap ? threadIdx.x / 2 : threadIdx.x] = x;
  block_sum(s.scratch, x);
}

TEST_F(SimtShadow, FindsAMissingBarrierWhateverTheScheduleWas) {
  EXPECT_EQ(fault_of(exchange<kNone>), "no fault");
  expect_fault(exchange<kNoBarrierBeforeWrite>, "race: this thread");
  expect_fault(exchange<kOverlap>, "writes it in");
}

TEST_F(SimtShadow, FindsAReadOfMemoryNobodyWrote) {
  expect_fault(exchange<kNoBarrierAfterWrite>, "which was never written");
  expect_fault(exchange<kStale>, "which was never written");
}

template <bool sync>
void neighbours(const void*) {
  Values& s = static_shared<Values>();
  s.values[threadIdx.x] = 1;
  if (sync)
    __syncwarp();
  else
    __shfl_sync(kFullWarp, 1, 0);
  volatile float x = s.values[threadIdx.x ^ 1u];
  (void)x;
}

TEST_F(SimtShadow, AWarpBarrierOrdersMemoryAndAShuffleDoesNot) {
  EXPECT_EQ(fault_of(neighbours<true>), "no fault");
  expect_fault(neighbours<false>, "race: this thread reads shared memory");
}

TEST_F(SimtShadow, NeighbouringBytesBelongToDifferentThreads) {
  EXPECT_EQ(fault_of([](const void*) {
              Values& s = static_shared<Values>();
              if (threadIdx.x < 64) s.bytes[threadIdx.x] = 1;
              __syncthreads();
              if (threadIdx.x == 0) s.bytes[5] = s.bytes[6];
              if (threadIdx.x == 1) s.bytes[7] = 3;
            }),
            "no fault");
}

TEST_F(SimtShadow, ManyReadersAreAllRemembered) {
  expect_fault(
      [](const void*) {
        Values& s = static_shared<Values>();
        if (threadIdx.x == 0) s.values[0] = 1;
        __syncthreads();
        volatile float x = s.values[0];
        (void)x;
        __syncwarp();
        if (threadIdx.x == 40) s.values[0] = 2;  // ordered after its own warp's reads only
      },
      "race: this thread writes shared memory");
}

}  // namespace
}  // namespace tensorcraft::simt

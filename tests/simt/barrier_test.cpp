// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/ptx/barrier.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/simt/launch.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tensorcraft::simt {
namespace {

using tensorcraft::static_shared;  // what a kernel calls, not its hook

std::string fault_of(Index3 block, Body body) {
  try {
    launch({.name = "k", .block = block}, body, nullptr);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kernel_fault);
    return e.what();
  }
  return "no fault";
}

struct Numbers {
  int values[256];
};

void reverse(const void* params) {
  auto& shared = static_shared<Numbers>();
  int* out = *static_cast<int* const*>(params) + blockIdx.x * blockDim.x;
  for (int round = 0; round < 3; ++round) {
    shared.values[threadIdx.x] = int(threadIdx.x + blockIdx.x) + round;
    __syncthreads();
    out[threadIdx.x] = shared.values[blockDim.x - 1 - threadIdx.x];
    __syncthreads();
  }
}

TEST(SimtBarrier, OrdersSharedMemoryInEveryBlock) {
  std::vector<int> out(50 * 256, -1);
  int* data = out.data();
  launch({.name = "reverse", .grid = {50}, .block = {256}}, reverse, &data);
  for (int i = 0; i < 50 * 256; ++i) EXPECT_EQ(out[size_t(i)], 255 - i % 256 + i / 256 + 2);
}

TEST(SimtBarrier, CountsOnlyThreadsThatHaveNotExited) {
  EXPECT_EQ(fault_of({96},
                     [](const void*) {
                       if (threadIdx.x >= 33) return;
                       __syncthreads();
                     }),
            "no fault");
}

TEST(SimtBarrier, ReportsThreadsAtDifferentBarriers) {
  const std::string text = fault_of({64}, [](const void*) {
    if (threadIdx.x < 32)
      __syncthreads();
    else
      __syncthreads();
  });
  EXPECT_NE(text.find("simt: k: block (0, 0, 0), thread (32, 0, 0): barrier divergence"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("barrier_test.cpp:"), std::string::npos) << text;
}

// Three lanes of the second warp wait for each other in a ring.
TEST(SimtBarrier, ReportsADeadlock) {
  const std::string text = fault_of({64}, [](const void*) {
    const unsigned lane = threadIdx.x % 32;
    if (threadIdx.x < 32)
      __syncthreads();
    else if (lane < 3)
      __syncwarp(lane == 0 ? 3u : lane == 1 ? 6u : 5u);
  });
  EXPECT_EQ(text.find("simt: k: deadlock: every thread waits\n  from block (0, 0, 0), thread (0, "
                      "0, 0): __syncthreads()"),
            0u)
      << text;
  EXPECT_NE(text.find("thread (32, 0, 0): __syncwarp ("), std::string::npos) << text;
  EXPECT_NE(text.find("29 threads have exited"), std::string::npos) << text;
}

// Two warps produce, two consume, through named barriers of 128 threads.
void produce_and_consume(const void* params) {
  auto& shared = static_shared<Numbers>();
  const unsigned i = threadIdx.x % 64;
  for (int round = 0; round < 5; ++round) {
    if (threadIdx.x < 64) {
      shared.values[i] = int(i) * round;
      ptx::bar_arrive(1, 128);
      ptx::bar_sync(2, 128);
    } else {
      ptx::bar_sync(1, 128);
      (*static_cast<int* const*>(params))[64 * round + int(i)] = shared.values[63 - i];
      ptx::bar_arrive(2, 128);
    }
  }
}

TEST(SimtBarrier, NamedBarriersLetProducersGoOn) {
  std::vector<int> out(5 * 64, -1);
  int* data = out.data();
  launch({.name = "produce_and_consume", .block = {128}}, produce_and_consume, &data);
  for (int i = 0; i < 5 * 64; ++i) EXPECT_EQ(out[size_t(i)], (63 - i % 64) * (i / 64));
}

TEST(SimtBarrier, ReportsMisuseOfANamedBarrier) {
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(fault_of({64}, [](const void*) { ptx::bar_sync(16, 64); }),
      "thread (0, 0, 0): bar.sync: the barrier must be in [0, 16), got 16");
  has(fault_of({64}, [](const void*) { ptx::bar_sync(1, 33); }), "a multiple of 32 up to 64");
  has(fault_of({64}, [](const void*) { ptx::bar_sync(1, threadIdx.x < 32 ? 64 : 32); }),
      "bar.sync expects 32 threads, others wait there for 64");
  has(fault_of({64},
               [](const void*) {
                 ptx::bar_arrive(1, 64);
                 ptx::bar_arrive(1, 64);
               }),
      "bar.arrive 1: the thread comes again before 64 have come");
  has(fault_of({96},
               [](const void*) {
                 if (threadIdx.x % 32 < 16 || threadIdx.x < 32) ptx::bar_sync(3, 64);
                 __syncwarp();
               }),
      "bar.sync 3: only some lanes of warp");
}

}  // namespace
}  // namespace tensorcraft::simt

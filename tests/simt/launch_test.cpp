// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/interrupt.hpp"
#include "tensorcraft/simt/launch.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/no_threads.hpp"

#include <gtest/gtest.h>

#include <sched.h>

#include <array>
#include <numeric>
#include <system_error>
#include <thread>
#include <vector>

namespace tensorcraft::simt {
namespace {

struct Visits {
  std::vector<int>* counts;
  Index3 grid, block;
};

void visit(const void* params) {
  const auto& p = *static_cast<const Visits*>(params);
  EXPECT_EQ(gridDim.x, p.grid.x);
  EXPECT_EQ(blockDim.y, p.block.y);
  const size_t block = blockIdx.x + size_t(gridDim.x) * (blockIdx.y + gridDim.y * blockIdx.z);
  const size_t thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const size_t threads = size_t(blockDim.x) * blockDim.y * blockDim.z;
  ++(*p.counts)[block * threads + thread];
}

TEST(SimtLaunch, RunsEveryThreadOfEveryBlockOnce) {
  const Index3 grid{5, 3, 2}, block{7, 4, 3};
  std::vector<int> counts(5 * 3 * 2 * 7 * 4 * 3);
  const Visits visits{&counts, grid, block};
  launch({.name = "visit", .grid = grid, .block = block}, visit, &visits);
  for (const int c : counts) EXPECT_EQ(c, 1);
}

// As `taskset -c 0` has it, so that a debugger stays on one.
TEST(SimtLaunch, TakesNoMoreThreadsThanTheProcessMayUseCores) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  std::vector<std::thread::id> ids(64);
  launch(
      {.name = "where", .grid = {64}},
      [](const void* p) {
        (*static_cast<std::vector<std::thread::id>* const*>(p))->at(blockIdx.x) =
            std::this_thread::get_id();
      },
      std::array{&ids}.data());
  sched_setaffinity(0, sizeof all, &all);
  EXPECT_EQ(ids, std::vector(64, std::this_thread::get_id()));
}

TEST(SimtLaunch, TakesTheCallersThreadAloneWhereNoOtherCanBeStarted) {
  std::vector<std::thread::id> ids(64);
  {
    const test::NoThreads none;
    EXPECT_THROW(std::thread([] {}).join(), std::system_error);
    launch(
        {.name = "where", .grid = {64}},
        [](const void* p) {
          (*static_cast<std::vector<std::thread::id>* const*>(p))->at(blockIdx.x) =
              std::this_thread::get_id();
        },
        std::array{&ids}.data());
  }
  EXPECT_EQ(ids, std::vector(64, std::this_thread::get_id()));
}

TEST(SimtLaunch, RefusesWhatAGpuRefuses) {
  const auto refused = [](const Launch& l) {
    try {
      launch(l, [](const void*) {}, nullptr);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::value);
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(refused({.name = "k", .block = {1025}}),
            "simt: k: a block has 1 to 1024 threads, got 1025");
  EXPECT_EQ(refused({.name = "k", .block = {0}}), "simt: k: a block has 1 to 1024 threads, got 0");
  EXPECT_EQ(refused({.name = "k", .grid = {0}}),
            "simt: k: the grid is at most (2^31 - 1, 65535, 65535) and not empty, got (0, 1, 1)");
  EXPECT_EQ(refused({.name = "k", .grid = {3}, .cluster = {2}}),
            "simt: k: a cluster has 1 to 16 blocks and divides the grid, got (2, 1, 1)");
  EXPECT_EQ(refused({.name = "k", .shared_bytes = 300000}),
            "simt: k: a block has at most 232448 bytes of shared memory, got 300000");
}

TEST(SimtLaunch, PassesOnWhatTheKernelThrowsAndCanLaunchAgain) {
  const auto throws = [](const void*) {
    if (blockIdx.x == 3 && threadIdx.x == 1) throw std::out_of_range("from the kernel");
    __syncthreads();
  };
  for (int i = 0; i < 20; ++i)
    EXPECT_THROW(launch({.name = "k", .grid = {8}, .block = {64}}, throws, nullptr),
                 std::out_of_range);
  std::vector<int> counts(64);
  const Visits visits{&counts, {1}, {64}};
  launch({.name = "visit", .grid = {1}, .block = {64}}, visit, &visits);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), 64);
}

TEST(SimtLaunch, EndsIfTheCallersCheckSaysSoAndCanLaunchAgain) {
  const auto never_ends = [](const void* goes_on) {
    while (*static_cast<const volatile bool*>(goes_on)) __syncthreads();
  };
  const bool goes_on = true;
  for (const unsigned blocks : {1u, 8u}) {
    set_interrupt_check([] { return true; });
    try {
      launch({.name = "k", .grid = {blocks}, .block = {64}}, never_ends, &goes_on);
      ADD_FAILURE() << "it went on";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::cancelled);
    }
    set_interrupt_check(nullptr);
    std::vector<int> counts(64);
    const Visits visits{&counts, {1}, {64}};
    launch({.name = "visit", .grid = {1}, .block = {64}}, visit, &visits);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), 64);
  }
}

TEST(SimtLaunch, RefusesALaunchFromAKernel) {
  const auto nested = [](const void*) { launch({.name = "inner"}, [](const void*) {}, nullptr); };
  EXPECT_THROW(launch({.name = "outer"}, nested, nullptr), Error);
}

// Recursion that the compiler cannot turn into a loop, with its frame in memory.
int deep(int n) {
  volatile char frame[512];
  frame[0] = char(n);
  return n == 0 ? 0 : deep(n - 1) + frame[0];
}

TEST(SimtLaunchDeathTest, AStackOverflowHitsTheGuardPage) {
  EXPECT_DEATH(
      launch({.name = "k", .block = {2}}, [](const void*) { deep(1 << 20); }, nullptr), "");
}

}  // namespace
}  // namespace tensorcraft::simt

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/parallel.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/interrupt.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tensorcraft::host {
namespace {

struct ParallelFor : testing::TestWithParam<int> {
  void SetUp() override { set_num_threads(GetParam()); }
  void TearDown() override { set_num_threads(0); }
};
INSTANTIATE_TEST_SUITE_P(Threads, ParallelFor, testing::Values(1, 2, 3, 8));

std::set<std::pair<int64_t, int64_t>> ranges_of(int64_t n, int64_t grain) {
  std::set<std::pair<int64_t, int64_t>> ranges;
  std::mutex mutex;
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    ranges.emplace(begin, end);
  });
  return ranges;
}

TEST_P(ParallelFor, CoversEveryIndexOnce) {
  for (const int64_t n : {1, 2, 7, 64, 1000, 4097})
    for (const int64_t grain : {0, 1, 3, 64, 5000}) {
      std::vector<std::atomic<int>> visits(n);
      parallel_for(n, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++visits[i];
      });
      for (const auto& v : visits) ASSERT_EQ(v, 1) << "n=" << n << " grain=" << grain;
    }
}

TEST_P(ParallelFor, DoesNothingForAnEmptyRange) {
  parallel_for(0, 1, [](int64_t, int64_t) { FAIL(); });
}

TEST_P(ParallelFor, SplitsTheSameWayEveryTimeAtMultiplesOfTheGrain) {
  const auto first = ranges_of(1001, 16);
  for (const auto& [begin, end] : first) {
    EXPECT_EQ(begin % 16, 0);
    EXPECT_TRUE(end % 16 == 0 || end == 1001);
  }
  for (int i = 0; i < 200; ++i) ASSERT_EQ(ranges_of(1001, 16), first);
}

TEST_P(ParallelFor, MakesOneCallBelowTheGrain) {
  EXPECT_EQ(ranges_of(100, 100), (std::set<std::pair<int64_t, int64_t>>{{0, 100}}));
}

TEST_P(ParallelFor, ThrowsTheExceptionOfARangeAndStaysUsable) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_THROW(parallel_for(64, 1,
                              [](int64_t, int64_t end) {
                                if (end > 16) throw std::out_of_range("from a range");
                              }),
                 std::out_of_range)
        << i;
  }
  EXPECT_FALSE(ranges_of(64, 1).empty());
}

// Work for a minute and more.
void sleep_in_ranges() {
  parallel_for(1 << 20, 1, [](int64_t begin, int64_t end) {
    std::this_thread::sleep_for(std::chrono::microseconds(100) * (end - begin));
  });
}

TEST_P(ParallelFor, EndsIfTheCallersCheckSaysSoAndStaysUsable) {
  for (int i = 0; i < 3; ++i) {
    set_interrupt_check([] { return true; });
    try {
      sleep_in_ranges();
      ADD_FAILURE() << "it went on";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::cancelled);
    }
    set_interrupt_check(nullptr);
    EXPECT_FALSE(ranges_of(64, 1).empty());
  }
}

TEST_P(ParallelFor, RunsANestedCallInTheCallingThread) {
  std::atomic<int> sum = 0;
  parallel_for(8, 1, [&](int64_t begin, int64_t end) {
    const auto self = std::this_thread::get_id();
    for (int64_t i = begin; i < end; ++i)
      parallel_for(100, 1, [&](int64_t first, int64_t last) {
        EXPECT_EQ(std::this_thread::get_id(), self);
        sum += int(last - first);
      });
  });
  EXPECT_EQ(sum, 800);
}

TEST_P(ParallelFor, ServesSeveralUserThreadsAtOnce) {
  std::atomic<int64_t> sum = 0;
  std::vector<std::thread> users;
  for (int u = 0; u < 4; ++u)
    users.emplace_back([&] {
      for (int i = 0; i < 500; ++i)
        parallel_for(64, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    });
  for (auto& user : users) user.join();
  EXPECT_EQ(sum, 4 * 500 * 64);
}

TEST_P(ParallelFor, WorksInTheChildOfAFork) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer allows no new thread in the child of a fork";
#endif
  ranges_of(64, 1);  // the parent has its threads
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int64_t> sum = 0;
    parallel_for(64, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    _exit(sum == 64 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(SetNumThreads, TakesEffectAndZeroRestoresTheCores) {
  const int cores = num_threads();
  set_num_threads(cores + 3);
  EXPECT_EQ(num_threads(), cores + 3);
  set_num_threads(0);
  EXPECT_EQ(num_threads(), cores);
  EXPECT_THROW(set_num_threads(-1), Error);
}

TEST(SetNumThreads, UsesMoreThanOneThread) {
  set_num_threads(2);
  std::atomic<int> arrived = 0;
  // Ends only if two threads are inside at the same time.
  parallel_for(2, 1, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  set_num_threads(0);
  EXPECT_EQ(arrived, 2);
}

// A virtual machine's Linux would let a worker wait for its caller's core while another core is
// idle.
TEST(Workers, LeaveTheirCallersCore) {
  cpu_set_t own;
  ASSERT_EQ(sched_getaffinity(0, sizeof own, &own), 0);
  if (CPU_COUNT(&own) < 2) GTEST_SKIP() << "this process has one core";
  set_num_threads(2);
  const pid_t caller = gettid();
  std::atomic<int> cores = 0;
  parallel_for(2, 1, [&](int64_t, int64_t) {
    if (gettid() == caller) {
      while (cores == 0) std::this_thread::yield();
      return;
    }
    cpu_set_t set;
    cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
  });
  set_num_threads(0);
  EXPECT_EQ(cores, CPU_COUNT(&own) - 1);
  cpu_set_t now;
  ASSERT_EQ(sched_getaffinity(0, sizeof now, &now), 0);
  EXPECT_TRUE(CPU_EQUAL(&now, &own)) << "the caller may run where it could before";
}

}  // namespace
}  // namespace tensorcraft::host

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/timing.hpp"

#include "tensorcraft/core/error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace tensorcraft::diagnose {
namespace {

using test::FakeDriver;

TEST(Timed, ByTheWallTakesTheCopiesInTurn) {
  std::vector<int> seen;
  Rotation rotation{3};
  const auto timed = make_timed(
      [&](int copy) {
        seen.push_back(copy);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      },
      rotation, Method::wall, StreamRef(), 2000);
  EXPECT_GE(timed->microseconds(), 2000);
  for (int i = 0; i < 3; ++i) timed->microseconds();
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 0}));
  EXPECT_EQ(timed->method(), Method::wall);
}

TEST(Timed, ByTheWallRepeatsWhatIsTooShortForAClock) {
  int calls = 0;
  Rotation rotation;
  make_timed([&](int) { ++calls; }, rotation, Method::wall, StreamRef(), 1)->microseconds();
  EXPECT_EQ(calls, 100);
}

TEST(Timed, ByEventsCountsOneCallOfTwo) {
  FakeDriver fake;
  const Stream stream;
  std::vector<int> seen;
  Rotation rotation{2};
  const auto timed = make_timed(
      [&](int copy) {
        seen.push_back(copy);
        fake.clock_ms += 2;
      },
      rotation, Method::events, stream, 0);
  EXPECT_DOUBLE_EQ(timed->microseconds(), 2000);
  EXPECT_EQ(seen, (std::vector<int>{0, 1}));
  EXPECT_EQ(timed->method(), Method::events);
}

TEST(Timed, CandidatesOfACaseShareOneRotation) {
  FakeDriver fake;
  const Stream stream;
  std::vector<int> seen;
  Rotation rotation{3};
  const Call call = [&](int copy) { seen.push_back(copy); };
  const auto ours = make_timed(call, rotation, Method::events, stream, 0),
             peer = make_timed(call, rotation, Method::events, stream, 0);
  ours->microseconds();
  peer->microseconds();
  EXPECT_EQ(seen,
            (std::vector<int>{0, 1, 2, 0}));  // what the peer is timed with is no longer there
}

TEST(Timed, WhatCannotBeRecordedIsTimedByEvents) {
  FakeDriver fake;
  const Stream stream;
  fake.failing["cuStreamBeginCapture"] = 901;
  Rotation rotation{2};
  const auto timed = make_timed([](int) {}, rotation, Method::graph, stream, 0);
  EXPECT_EQ(timed->method(), Method::events);
}

TEST(Timed, ByAGraphIsTheTimeOfOneOfItsCalls) {
  FakeDriver fake;
  const Stream stream;
  int calls = 0;
  Rotation rotation{20};
  const auto timed = make_timed([&](int) { ++calls; }, rotation, Method::graph, stream, 0);
  EXPECT_EQ(timed->method(), Method::graph);
  EXPECT_EQ(calls, 20);  // recorded once
  timed->microseconds();
  EXPECT_EQ(calls, 20);
  EXPECT_EQ(fake.calls["cuGraphLaunch"], 2);
}

TEST(Profile, IsWhatAKernelReaches) {
  FakeDriver fake;
  const Stream stream;
  Rotation rotation{2};
  std::vector<int> seen;
  const Call call = [&](int copy) {
    seen.push_back(copy);
    fake.clock_ms += 1;
  };
  const PerformanceProfiler profiler(stream, 5);
  const KernelProfile profile =
      profiler.profile_kernel(call, rotation, {.bytes = 4e9, .flops = 2e12});
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}));  // one is not counted
  EXPECT_DOUBLE_EQ(profile.median_us, 1000);
  EXPECT_DOUBLE_EQ(profile.achieved_tflops, 2000);
  EXPECT_DOUBLE_EQ(profile.achieved_gbs, 4000);
  EXPECT_EQ(fake.calls["cuGraphLaunch"], 0);
  profiler.profile_kernel(call, rotation, {.bytes = 4e6, .flops = 2e9});
  EXPECT_EQ(fake.calls["cuGraphLaunch"], 10);  // the host enqueues no faster
}

TEST(Profile, OfTheHostIsByItsClock) {
  int calls = 0;
  Rotation rotation;
  const auto call = [&](int) {
    ++calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const KernelProfile profile =
      PerformanceProfiler(StreamRef(), 3).profile_kernel(call, rotation, {.flops = 1e9});
  EXPECT_GE(profile.median_us, 1000);
  EXPECT_LE(profile.achieved_tflops, 1);
  EXPECT_GT(profile.achieved_tflops, 0);
  EXPECT_GE(calls, 4);
}

TEST(Times, OfRunsAreTheMedianAndTheTenths) {
  const Times times = times_of({9, 1, 5, 3, 7, 2, 8, 4, 6, 10});
  EXPECT_EQ(times.median, 5.5);
  EXPECT_EQ(times.p10, 2);
  EXPECT_EQ(times.p90, 10);
  EXPECT_EQ(times_of({}).median, 0);
}

}  // namespace
}  // namespace tensorcraft::diagnose

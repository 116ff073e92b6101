// SPDX-License-Identifier: Apache-2.0
// Launches of the library on a driver in host memory.
#include "tensorcraft/runtime/dispatch/dispatch.hpp"

#include "tensorcraft/cuda/graph.hpp"
#include "tensorcraft/cuda/launch.hpp"
#include "tensorcraft/cuda/launch_watcher.hpp"
#include "tensorcraft/cuda/stream_priority.hpp"
#include "tensorcraft/runtime/scheduler/scheduler.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <future>

namespace tensorcraft::dispatch {
namespace {

using test::FakeDriver;
using test::FakeGpu;

class DispatchTest : public testing::Test {
 protected:
  DispatchTest() {
    driver_.deferred = true;
    driver_.load_kernel = [](const char*) {
      return test::FakeKernel{.run = [](const test::FakeLaunch&, const void*) {},
                              .params_bytes = 4};
    };
    const std::byte image[4] = {};
    kernel_ = LoadedKernel::load(image, "tc_entry", 0);
    before_ = counts();
  }
  ~DispatchTest() override { record_launches(false); }
  void launch(StreamRef stream, std::string_view what = "softmax") {
    const int params = 0;
    tensorcraft::launch(*kernel_, {.grid = {2}, .block = {32}}, &params, stream, what);
  }
  // Since the test began.
  Counts made() const {
    const Counts now = counts();
    return {.launched = now.launched - before_.launched,
            .completed = now.completed - before_.completed,
            .failed = now.failed - before_.failed,
            .cancelled = now.cancelled - before_.cancelled,
            .in_flight = now.in_flight};
  }

  FakeDriver driver_;
  std::shared_ptr<const LoadedKernel> kernel_;
  Counts before_;
};

TEST_F(DispatchTest, NobodyWatchesUnlessAskedTo) {
  const Stream stream;
  EXPECT_FALSE(is_watching());
  launch(stream);
  EXPECT_EQ(made(), Counts{});
  record_launches(true);
  record_launches(true);
  EXPECT_TRUE(is_watching());
  set_limit(stream, 3);
  record_launches(false);
  EXPECT_TRUE(is_watching());
  set_limit(stream, 0);
  EXPECT_FALSE(is_watching());
  {
    const TaskScope task(5);
    EXPECT_TRUE(is_watching());
  }
  EXPECT_FALSE(is_watching());
}

TEST_F(DispatchTest, ALaunchIsCountedAndKept) {
  const Stream stream;
  cuda::name_kernel(kernel_->handle(), "block_row");
  record_launches(true);
  launch(stream, "gemm");
  {
    const TaskScope outer(8);
    const TaskScope task(9);
    EXPECT_EQ(current_task(), 9u);
    launch(stream);
  }
  EXPECT_EQ(current_task(), 0u);
  EXPECT_EQ(made(), (Counts{.launched = 2, .in_flight = 2}));
  stream.ref().synchronize();
  EXPECT_EQ(made(), (Counts{.launched = 2, .completed = 2}));
  const auto last = recent(2);
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(std::string(last[0].name.data()), "softmax");
  EXPECT_EQ(last[0].task, 9u);
  EXPECT_EQ(cuda::name_of_kernel(last[0].kernel), "block_row");
  EXPECT_EQ(std::string(last[1].name.data()), "gemm");
  EXPECT_EQ(last[1].task, 0u);
  EXPECT_EQ(last[1].stream, stream.ref().handle());
  EXPECT_EQ(last[1].grid, (Dim3{2}));
}

TEST_F(DispatchTest, AStreamsLimitMakesTheNextLaunchWait) {
  const Stream stream;
  set_limit(stream, 4);
  for (int i = 0; i < 100; ++i) {
    launch(stream);
    EXPECT_LE(made().in_flight, 4u);
  }
  EXPECT_EQ(limit(stream), 4);
  set_limit(stream, 0);
  EXPECT_EQ(made().launched, 100u);
  test::expect_error_with(ErrorKind::value, "cuda:7",
                          [] { set_limit(StreamRef::default_stream(7), 1); });
}

TEST_F(DispatchTest, ARefusedLaunchIsFailed) {
  record_launches(true);
  driver_.failing["cuLaunchKernelEx"] = 701;
  const Stream stream;
  EXPECT_THROW(launch(stream), Error);
  EXPECT_EQ(made(), (Counts{.failed = 1}));
  EXPECT_EQ(recent(1)[0].outcome, Outcome::failed);
}

TEST_F(DispatchTest, ACancelledTasksLaunchIsRefused) {
  const Stream stream;
  std::atomic<bool> cancelled = false;
  const TaskScope task(3, &cancelled);
  launch(stream);
  cancelled = true;
  test::expect_error(
      ErrorKind::cancelled, [&] { launch(stream); },
      "softmax: not launched, as task 3 was cancelled");
  EXPECT_EQ(made().launched, 1u);
  EXPECT_EQ(made().cancelled, 1u);
  EXPECT_EQ(driver_.launches.size(), 1u);
}

TEST_F(DispatchTest, ATaskThatIsCancelledWhileItsLaunchWaitsForItsTurnLaunchesNothing) {
  const Stream stream;
  set_limit(stream, 1);
  std::atomic<bool> cancelled = false;
  const TaskScope task(4, &cancelled);
  launch(stream);
  driver_.on_call = [&](std::string_view name) {
    if (name.starts_with("cuEvent")) cancelled = true;  // a look at how far the stream is
  };
  test::expect_error(
      ErrorKind::cancelled, [&] { launch(stream); },
      "softmax: not launched, as task 4 was cancelled");
  EXPECT_EQ(driver_.launches.size(), 1u);
  driver_.on_call = nullptr;
  cancelled = false;
  launch(stream);  // the turn that was not used is there again
  EXPECT_EQ(driver_.launches.size(), 2u);
  set_limit(stream, 0);
}

TEST_F(DispatchTest, AHostCallOfACancelledTaskIsRefused) {
  refuse_cancelled("exp");  // no task
  std::atomic<bool> cancelled = false;
  const TaskScope task(3, &cancelled);
  refuse_cancelled("exp");
  cancelled = true;
  test::expect_error(
      ErrorKind::cancelled, [] { refuse_cancelled("exp"); },
      "exp: not launched, as task 3 was cancelled");
}

TEST_F(DispatchTest, WhatIsRecordedIsKeptAndNotInFlight) {
  record_launches(true);
  const Stream stream;
  const Graph graph(stream, [&] {
    for (int i = 0; i < 100; ++i) launch(stream);
  });
  EXPECT_EQ(made(), Counts{});
  graph.launch(stream);
  EXPECT_EQ(made().launched, 1u);
  EXPECT_EQ(std::string(recent(1)[0].name.data()), "graph");
}

TEST_F(DispatchTest, TheErrorOfALossEndsWithTheLastLaunches) {
  record_launches(true);
  const Stream stream;
  launch(stream, "first");
  launch(stream, "guilty");
  driver_.failing["cuStreamSynchronize"] = 700;
  std::string said, again;
  try {
    stream.ref().synchronize();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device_lost);
    said = error.what();
  }
  EXPECT_NE(said.find("\nthe last launches, the newest first (all "), said.npos) << said;
  EXPECT_NE(said.find("\n  guilty"), said.npos) << said;
  const size_t begin = said.find(" in /") + 4;
  const std::string path = said.substr(begin, said.find("):", begin) - begin);
  std::ifstream file(path);
  std::string line;
  ASSERT_TRUE(std::getline(file, line)) << path;
  EXPECT_TRUE(line.starts_with("guilty")) << line;
  std::remove(path.c_str());
  try {
    stream.ref().synchronize();
  } catch (const Error& error) {
    again = error.what();
  }
  EXPECT_EQ(again.find("launches"), again.npos) << again;
  EXPECT_EQ(made().in_flight, 0u);
  EXPECT_EQ(made().failed, 2u);
}

// The inventory's case: a task fails with kernels in flight.
TEST_F(DispatchTest, ATaskThatFailsHasItsLaunchesInFlightAndThenDone) {
  using scheduler::CudaExecutor;
  using scheduler::Drive;
  using scheduler::Scheduler;
  using scheduler::TaskState;
  Scheduler tasks({.memory_bytes = 100}, std::make_unique<CudaExecutor>(), scheduler::steady_now,
                  Drive::callers);
  tasks.submit({.id = 21, .name = "fails"}, [&](StreamRef stream) {
    launch(stream, "one");
    launch(stream, "two");
    fail(ErrorKind::value, "no third");
  });
  EXPECT_EQ(made(), (Counts{.launched = 2, .in_flight = 2}));
  for (const Launch& one : recent(2)) EXPECT_EQ(one.task, 21u);
  const scheduler::TaskStatus status = tasks.wait(21);
  EXPECT_EQ(status.state, TaskState::failed);
  EXPECT_EQ(status.error, "no third");
  EXPECT_EQ(made(), (Counts{.launched = 2, .completed = 2}));
  EXPECT_FALSE(is_watching());
}

TEST_F(DispatchTest, CancelOfARunningTaskStopsItsLaunches) {
  using scheduler::CudaExecutor;
  using scheduler::Scheduler;
  using scheduler::TaskState;
  std::promise<void> running, cancelled;
  Scheduler tasks({.memory_bytes = 100}, std::make_unique<CudaExecutor>());
  tasks.submit({.id = 22, .name = "long"}, [&](StreamRef stream) {
    launch(stream);
    running.set_value();
    cancelled.get_future().wait();
    launch(stream);
  });
  running.get_future().wait();
  tasks.cancel(22);
  cancelled.set_value();
  EXPECT_EQ(tasks.wait(22).state, TaskState::cancelled);
  EXPECT_EQ(made().launched, 1u);
  EXPECT_EQ(made().cancelled, 1u);
}

TEST_F(DispatchTest, AHighPriorityIsALowNumberOfTheDrivers) {
  const Stream usual = cuda::make_stream(0, 0);
  EXPECT_EQ(driver_.calls["cuStreamCreateWithPriority"], 0);
  const Stream high = cuda::make_stream(0, 3);
  EXPECT_EQ(driver_.last_priority, -3);
  const Stream next;
  EXPECT_EQ(driver_.calls["cuStreamCreateWithPriority"], 1);
}

}  // namespace
}  // namespace tensorcraft::dispatch

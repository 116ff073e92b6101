// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/scheduler/executor.hpp"

#include "tensorcraft/core/error.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"
#include "tests/support/no_threads.hpp"

#include <atomic>
#include <future>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

namespace tensorcraft::scheduler {
namespace {

using test::FakeDriver;
using test::FakeGpu;
using namespace std::chrono_literals;

// How each of `count` tasks ended, "" if it completed. Fails after some seconds.
std::map<TaskId, std::string> ends_of(Executor& executor, size_t count) {
  std::map<TaskId, std::string> ends;
  for (int i = 0; i < 100 && ends.size() < count; ++i) {
    executor.wait(100ms);
    for (const Report& report : executor.take_reports())
      EXPECT_TRUE(ends.emplace(report.id, report.error.value_or("")).second) << "two reports";
  }
  EXPECT_EQ(ends.size(), count);
  return ends;
}

// Checks what every executor does.
class EachExecutor : public testing::TestWithParam<bool> {
 protected:
  FakeDriver fake_;
  std::unique_ptr<Executor> make() {
    if (GetParam()) return std::make_unique<CudaExecutor>(0, 2);
    return std::make_unique<CpuExecutor>(2);
  }
};
INSTANTIATE_TEST_SUITE_P(Executors, EachExecutor, testing::Bool(),
                         [](const auto& info) { return info.param ? "Cuda" : "Cpu"; });

// The k-th of them for each k: tests/python/test_refusals.py.
TEST(CpuExecutor, NeedsItsThreads) {
  const test::NoThreads none;
  test::expect_error_with(ErrorKind::out_of_memory,
                          "Scheduler: the system starts no further thread",
                          [] { const CpuExecutor refused(2); });
}

TEST_P(EachExecutor, ReportsEachTaskOnceAndWhatItFailedWith) {
  const auto executor = make();
  EXPECT_TRUE(executor->take_reports().empty());
  executor->start(1, 0, [](StreamRef) {});
  executor->start(2, -1, [](StreamRef) { fail(ErrorKind::value, "no such row"); });
  executor->start(3, 5, [](StreamRef) { throw 7; });
  executor->start(4, 5, [](StreamRef) { throw std::runtime_error("foreign"); });
  const std::map<TaskId, std::string> expected = {
      {1, ""}, {2, "no such row"}, {3, "an exception of unknown type"}, {4, "foreign"}};
  EXPECT_EQ(ends_of(*executor, 4), expected);
  EXPECT_TRUE(executor->take_reports().empty());
}

TEST_P(EachExecutor, LetsGoOfWhatTheWorkCapturedOnceTheTaskHasEnded) {
  const auto executor = make();
  std::atomic<bool> gone = false;
  const auto let_go = [&](int*) {
    executor->stop(1);  // may use the executor, so no lock is held
    executor->take_reports();
    gone = true;
  };
  executor->start(1, 0, [held = std::shared_ptr<int>(nullptr, let_go)](StreamRef) {});
  ends_of(*executor, 1);
  EXPECT_TRUE(gone);
}

TEST_P(EachExecutor, WaitsNoLongerThanItIsAllowedTo) {
  const auto executor = make();
  executor->wait(1ms);
  EXPECT_TRUE(executor->take_reports().empty());
}

TEST(CpuExecutor, RunsAsManyTasksAtOnceAsItHasThreads) {
  CpuExecutor executor(2);
  std::promise<void> first, second;
  executor.start(1, 0, [&](StreamRef) { first.set_value(), second.get_future().wait(); });
  executor.start(2, 0, [&](StreamRef) { second.set_value(), first.get_future().wait(); });
  EXPECT_EQ(ends_of(executor, 2).size(), 2u);
}

TEST(CpuExecutor, StopsWhatHasNotBegun) {
  CpuExecutor executor(1);
  std::promise<void> begun, go;
  bool ran = false;
  executor.start(1, 0, [&](StreamRef) { begun.set_value(), go.get_future().wait(); });
  executor.start(2, 0, [&](StreamRef) { ran = true; });
  begun.get_future().wait();
  executor.stop(2);
  executor.stop(2);
  executor.stop(1);  // goes on
  EXPECT_EQ(ends_of(executor, 1).at(2), "stopped before it began");
  go.set_value();
  EXPECT_EQ(ends_of(executor, 1).at(1), "");
  EXPECT_FALSE(ran);
}

TEST(CpuExecutor, DropsAtTheEndWhatHasNotBegunAndWaitsForTheRest) {
  std::promise<void> begun, dropped;
  bool ran = false, ended = false;
  {
    CpuExecutor executor(1);
    executor.start(1, 0, [&](StreamRef) {
      begun.set_value();
      dropped.get_future().wait();
      ended = true;
    });
    const auto tell = [&](int*) { dropped.set_value(); };
    executor.start(2, 0,
                   [&, held = std::shared_ptr<int>(nullptr, tell)](StreamRef) { ran = true; });
    begun.get_future().wait();
  }
  EXPECT_TRUE(ended);
  EXPECT_FALSE(ran);
}

TEST(CpuExecutor, NeedsAThread) {
  test::expect_error(
      ErrorKind::value, [] { CpuExecutor executor(0); },
      "CpuExecutor: threads must be at least 1, got 0");
}

TEST(CudaExecutor, SpreadsTasksOverItsStreams) {
  FakeDriver fake({FakeGpu{}, FakeGpu{}});
  CudaExecutor executor(1, 2);
  std::vector<StreamRef> used;
  for (const int stream : {0, 1, 2, -1})
    executor.start(TaskId(used.size()), stream, [&](StreamRef s) { used.push_back(s); });
  ASSERT_EQ(used.size(), 4u);
  EXPECT_EQ(used[0].device(), 1);
  EXPECT_NE(used[0], used[1]);
  EXPECT_EQ(used[0], used[2]);
  EXPECT_EQ(used[1], used[3]);
}

TEST(CudaExecutor, ReportsATaskWhenTheEventBehindItsWorkIsDone) {
  FakeDriver fake;
  CudaExecutor executor;
  auto buffer = std::make_shared<int>(1);
  const std::weak_ptr<int> alive = buffer;
  executor.start(1, 0, [&, buffer = std::move(buffer)](StreamRef) {
    EXPECT_EQ(fake.calls["cuEventRecord"], 0);
  });
  EXPECT_EQ(fake.calls["cuEventRecord"], 1);
  executor.start(2, 0, [](StreamRef) { fail(ErrorKind::value, "after a launch"); });
  fake.failing["cuEventQuery"] = cuda::kErrorNotReady;
  executor.wait(1ms);
  EXPECT_TRUE(executor.take_reports().empty());
  EXPECT_FALSE(alive.expired());  // the GPU may still read it
  fake.failing.clear();
  const auto ends = ends_of(executor, 2);
  EXPECT_EQ(ends.at(1), "");
  EXPECT_EQ(ends.at(2), "after a launch");
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(fake.events, 0);
}

TEST(CudaExecutor, ReportsWhatTheDriverFailedWith) {
  for (const char* call : {"cuEventCreate", "cuEventRecord", "cuEventQuery"}) {
    FakeDriver fake;
    CudaExecutor executor;
    bool ran = false;
    fake.fail_at(call, 1, 400);
    executor.start(1, 0, [&](StreamRef) { ran = true; });
    EXPECT_NE(ends_of(executor, 1).at(1).find(call), std::string::npos) << call;
    EXPECT_EQ(ran, std::string(call) != "cuEventCreate");
  }
}

TEST(CudaExecutor, WaitsForTheGpuAtTheEnd) {
  FakeDriver fake;
  {
    CudaExecutor executor(0, 2);
    executor.start(1, 0, [](StreamRef) {});
    executor.start(2, 1, [](StreamRef) {});
    fake.failing["cuEventSynchronize"] = 400;  // is logged
  }
  EXPECT_EQ(fake.calls["cuEventSynchronize"], 2);
  EXPECT_EQ(fake.streams, 0);
  EXPECT_EQ(fake.events, 0);
}

TEST(CudaExecutor, RunsOnStreamsThatItIsGiven) {
  test::FakeDriver fake;
  const Stream first, second;
  const int streams = fake.streams;
  std::set<CUstream_st*> used;
  {
    CudaExecutor executor({first.ref(), second.ref()});
    EXPECT_EQ(fake.streams, streams);
    for (int i = 0; i < 4; ++i)
      executor.start(TaskId(i), i, [&](StreamRef s) { used.insert(s.handle()); });
  }
  EXPECT_EQ(used, (std::set{first.ref().handle(), second.ref().handle()}));
  EXPECT_EQ(fake.streams, streams);
  test::expect_error(
      ErrorKind::value, [] { CudaExecutor(std::vector<StreamRef>{}); },
      "CudaExecutor: streams must be at least 1, got 0");
}

TEST(CudaExecutor, NeedsAStream) {
  FakeDriver fake;
  test::expect_error(
      ErrorKind::value, [] { CudaExecutor executor(0, 0); },
      "CudaExecutor: streams must be at least 1, got 0");
}

}  // namespace
}  // namespace tensorcraft::scheduler

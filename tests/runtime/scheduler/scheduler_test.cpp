// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/scheduler/scheduler.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/interrupt.hpp"
#include "tensorcraft/runtime/dispatch/dispatch.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"
#include "tests/support/forked_child.hpp"

#include <atomic>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

namespace tensorcraft::scheduler {
namespace {

// Ends each task when the test says so.
class ManualExecutor final : public Executor {
 public:
  std::vector<TaskId> started, stopped;
  std::vector<Report> reports;
  void start(TaskId id, int, Work work) override {
    {
      const std::lock_guard lock(mutex_);
      started.push_back(id);
    }
    work(StreamRef());
  }
  void stop(TaskId id) override { stopped.push_back(id); }
  std::vector<Report> take_reports() override {
    const std::lock_guard lock(mutex_);
    return std::exchange(reports, {});
  }
  void wait(Time) override { std::this_thread::sleep_for(std::chrono::microseconds(50)); }
  void wake() override {}
  size_t count() {
    const std::lock_guard lock(mutex_);
    return started.size();
  }
  void end_all() {
    const std::lock_guard lock(mutex_);
    for (const TaskId id : started) reports.push_back({id, std::nullopt});
  }

 private:
  std::mutex mutex_;
};

const Work kNothing = [](StreamRef) {};

TEST(SchedulerShell, RunsTheWorkOfWhatTheMachineStartsWithTheClockItIsGiven) {
  auto owned = std::make_unique<ManualExecutor>();
  ManualExecutor& executor = *owned;
  Time now(5);
  Scheduler scheduler({}, std::move(owned), [&] { return now; }, Drive::callers);
  int ran = 0;
  const Work count = [&](StreamRef) { ++ran; };
  EXPECT_EQ(scheduler.submit({.id = 1}, count),
            (Decision{Time(5), 1, Verdict::admit, Reason::none}));
  EXPECT_EQ(scheduler.submit({.id = 2}, count).verdict, Verdict::queue);
  EXPECT_EQ(scheduler.submit({.id = 2}, count).verdict, Verdict::reject);
  EXPECT_EQ(ran, 1);
  now = Time(9);
  executor.reports = {{1, std::nullopt}};
  scheduler.advance();
  EXPECT_EQ(executor.started, (std::vector<TaskId>{1, 2}));
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(scheduler.status(2).started, Time(9));
  executor.reports = {{2, "broken"}};
  EXPECT_EQ(scheduler.wait(2).error, "broken");
  EXPECT_EQ(scheduler.log().size(), 4u);
}

TEST(SchedulerShell, DropsTheWorkOfACancelledTaskAndStopsARunningOne) {
  auto owned = std::make_unique<ManualExecutor>();
  ManualExecutor& executor = *owned;
  Scheduler scheduler({}, std::move(owned), steady_now, Drive::callers);
  scheduler.submit({.id = 1}, kNothing);
  auto buffer = std::make_shared<int>(1);
  const std::weak_ptr<int> alive = buffer;
  scheduler.submit({.id = 2}, [buffer = std::move(buffer)](StreamRef) {});
  scheduler.cancel(2);
  EXPECT_TRUE(alive.expired());
  scheduler.cancel(1);
  EXPECT_EQ(executor.stopped, std::vector<TaskId>{1});
  executor.reports = {{1, std::nullopt}};
  EXPECT_EQ(scheduler.wait(1).state, TaskState::cancelled);
  scheduler.forget(1);
  test::expect_error(ErrorKind::key, [&] { scheduler.wait(1); }, "scheduler: there is no task 1");
}

TEST(SchedulerShell, RunsAChainOnTheCpu) {
  Scheduler scheduler({.max_running = 2}, std::make_unique<CpuExecutor>(2));
  std::vector<TaskId> order;
  for (TaskId id = 1; id <= 3; ++id)
    scheduler.submit(
        {.id = id, .dependencies = id > 1 ? std::vector{id - 1} : std::vector<TaskId>{}},
        [&order, id](StreamRef) { order.push_back(id); });
  EXPECT_EQ(scheduler.wait(3).state, TaskState::completed);
  EXPECT_EQ(order, (std::vector<TaskId>{1, 2, 3}));
}

// Ends each task at once; waiting moves the clock.
class InstantExecutor final : public Executor {
 public:
  explicit InstantExecutor(Time& now) : now_(now) {}
  void start(TaskId id, int, Work) override { reports_.push_back({id, std::nullopt}); }
  void stop(TaskId) override {}
  std::vector<Report> take_reports() override { return std::exchange(reports_, {}); }
  void wait(Time at_most) override {
    if (reports_.empty()) now_ += at_most;
  }
  void wake() override {}

 private:
  Time& now_;
  std::vector<Report> reports_;
};

TEST(SchedulerShell, WaitsUntilPacingLetsTheNextTaskGoAndNoLonger) {
  Time now(0);
  Scheduler scheduler(
      {.bytes_per_second = 1e9, .shares = {{0, 1.0}}, .window = Time(100)},
      std::make_unique<InstantExecutor>(now), [&] { return now; }, Drive::callers);
  for (TaskId id = 1; id <= 3; ++id) scheduler.submit({.id = id, .traffic_bytes = 100}, kNothing);
  EXPECT_EQ(scheduler.wait(3).started, Time(200));
}

TEST(SchedulerShell, RunsOnTheStreamsOfAGpu) {
  test::FakeDriver fake;
  Scheduler scheduler({.max_running = 4}, std::make_unique<CudaExecutor>(0, 2));
  std::set<CUstream_st*> used;
  for (TaskId id = 1; id <= 4; ++id)
    scheduler.submit({.id = id, .stream = int(id)}, [&](StreamRef s) { used.insert(s.handle()); });
  for (TaskId id = 1; id <= 4; ++id) EXPECT_EQ(scheduler.wait(id).state, TaskState::completed);
  EXPECT_EQ(used.size(), 2u);
}

TEST(SchedulerShell, WorkMaySubmitWork) {
  Scheduler scheduler({.max_running = 2}, std::make_unique<CpuExecutor>(2));
  scheduler.submit({.id = 1}, [&](StreamRef) { scheduler.submit({.id = 2}, kNothing); });
  scheduler.wait(1);
  EXPECT_EQ(scheduler.wait(2).state, TaskState::completed);
}

// Threads submit, cancel and wait at once; what runs at one time never holds more than there is.
TEST(SchedulerShell, TakesManyThreads) {
  constexpr int kThreads = 4, kTasks = 200;
  Scheduler scheduler({.memory_bytes = 1000, .max_running = 3}, std::make_unique<CpuExecutor>(3));
  std::atomic<int64_t> held = 0, ran = 0;
  std::atomic<bool> over = false;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTasks; ++i) {
        const TaskId id = TaskId(t * kTasks + i + 1);
        const int64_t bytes = i * 37 % 1001;
        scheduler.submit({.id = id, .memory_bytes = uint64_t(bytes)}, [&, bytes](StreamRef) {
          if ((held += bytes) > 1000) over = true;
          ++ran;
          held -= bytes;
        });
        if (i % 5 == 0) try {
            scheduler.cancel(id);
          } catch (const Error& e) {  // it has ended already
            EXPECT_EQ(e.kind(), ErrorKind::value);
          }
        if (i % 3 == 0) scheduler.wait(id);
      }
    });
  threads.clear();
  for (TaskId id = 1; id <= kThreads * kTasks; ++id) scheduler.wait(id);
  const Statistics s = scheduler.statistics();
  EXPECT_FALSE(over);
  EXPECT_EQ(s.completed + s.cancelled, uint64_t(kThreads * kTasks));
  EXPECT_GE(uint64_t(ran), s.completed);
  EXPECT_EQ(s.reserved_bytes, 0u);
}

// Counts the ends that a scheduler tells of.
class Ends {
 public:
  Scheduler::OnEnd tell() {
    return [this](const TaskStatus& status) {
      const std::lock_guard lock(mutex_);
      seen_.push_back(status);
      changed_.notify_all();
    };
  }
  // How so many tasks ended, by id; fewer if that takes too long.
  std::map<TaskId, TaskStatus> wait(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return seen_.size() >= count; });
    std::map<TaskId, TaskStatus> by_id;
    for (const TaskStatus& status : seen_) by_id.emplace(status.task.id, status);
    return by_id;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TaskStatus> seen_;
};

TEST(SchedulerThread, MovesQueuedWorkWithoutACall) {
  Ends ends;
  Scheduler scheduler({}, std::make_unique<CpuExecutor>());
  scheduler.submit({.id = 1}, kNothing, ends.tell());
  scheduler.submit({.id = 2}, [](StreamRef) { throw std::runtime_error("broken"); }, ends.tell());
  scheduler.submit({.id = 3, .dependencies = {1}}, kNothing, ends.tell());
  scheduler.submit({.id = 3}, kNothing, ends.tell());  // rejected: nothing is told
  const auto ended = ends.wait(3);
  ASSERT_EQ(ended.size(), 3u);
  EXPECT_EQ(ended.at(1).state, TaskState::completed);
  EXPECT_EQ(ended.at(2).state, TaskState::failed);
  EXPECT_EQ(ended.at(2).error, "broken");
  EXPECT_EQ(ended.at(3).state, TaskState::completed);
}

TEST(SchedulerThread, MovesPacedWorkWhenItsTimeComes) {
  constexpr Time kWindow = std::chrono::milliseconds(10);
  Ends ends;
  Scheduler scheduler({.bytes_per_second = 1e6, .shares = {{0, 1.0}}, .window = kWindow},
                      std::make_unique<CpuExecutor>());
  for (TaskId id = 1; id <= 4; ++id)
    scheduler.submit({.id = id, .traffic_bytes = 10'000}, kNothing, ends.tell());
  const auto ended = ends.wait(4);
  ASSERT_EQ(ended.size(), 4u);
  EXPECT_GE(ended.at(4).started - ended.at(1).started, 3 * kWindow);
}

TEST(SchedulerThread, SubmissionsOfManyThreadsReachTheExecutorAsTheyWereAdmitted) {
  auto owned = std::make_unique<ManualExecutor>();
  ManualExecutor& executor = *owned;
  constexpr int kThreads = 4, kTasks = 300;
  std::vector<TaskId> admitted;
  {
    Scheduler scheduler({.max_running = kThreads * kTasks}, std::move(owned));
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kTasks; ++i)
          scheduler.submit({.id = TaskId(t * kTasks + i + 1)}, kNothing);
      });
    threads.clear();
    for (const Decision& d : scheduler.log()) admitted.push_back(d.id);
    while (executor.count() < admitted.size()) std::this_thread::yield();
    EXPECT_EQ(executor.started, admitted);
    executor.end_all();
  }
  EXPECT_EQ(admitted.size(), size_t(kThreads * kTasks));
}

TEST(SchedulerThread, TheEndCancelsWhatIsPendingAndWaitsForTheRest) {
  Ends ends;
  std::atomic<bool> runs = false;
  {
    Scheduler scheduler({}, std::make_unique<CpuExecutor>());
    scheduler.submit(
        {.id = 1},
        [&](StreamRef) {
          runs = true;
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        },
        ends.tell());
    scheduler.submit({.id = 2}, kNothing, ends.tell());
    while (!runs) std::this_thread::yield();
  }
  const auto ended = ends.wait(2);
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(ended.at(1).state, TaskState::completed);
  EXPECT_EQ(ended.at(2).state, TaskState::cancelled);
}

// A missed request would be seen an hour later.
TEST(SchedulerThread, SeesARequestToEndAtEachOfItsSteps) {
  for (int i = 0; i < 2000; ++i) Scheduler({}, std::make_unique<CpuExecutor>(1));
}

TEST(SchedulerThread, IsClosedOnceAndRefusesWhatComesLater) {
  Scheduler scheduler({}, std::make_unique<CpuExecutor>());
  std::atomic<int> ran = 0;
  scheduler.submit({.id = 1}, [&](StreamRef) { ++ran; });
  scheduler.wait(1);
  scheduler.close();
  scheduler.close();
  EXPECT_EQ(scheduler.status(1).state, TaskState::completed);
  test::expect_error(
      ErrorKind::value, [&] { scheduler.submit({.id = 2}, [&](StreamRef) { ++ran; }); },
      "Scheduler: it is closed; make another one");
  EXPECT_EQ(ran, 1);
}

// The first task's work holds the driver up in start(), so the second has started and is not handed
// over when it is cancelled.
TEST(SchedulerThread, WorkThatIsNotHandedOverIsNotCalledOnceItsTaskIsCancelled) {
  const auto cpu = [] { return std::make_unique<CpuExecutor>(1); };
  const auto gpu = []() -> std::unique_ptr<Executor> { return std::make_unique<CudaExecutor>(); };
  test::FakeDriver fake;
  for (const bool is_gpu : {false, true}) {
    std::promise<void> begun, go;
    std::atomic<int> ran = 0;
    Scheduler scheduler({.max_running = 2}, is_gpu ? gpu() : cpu());
    scheduler.submit({.id = 1}, [&](StreamRef) { begun.set_value(), go.get_future().wait(); });
    begun.get_future().wait();
    scheduler.submit({.id = 2}, [&](StreamRef) { ++ran; });
    EXPECT_EQ(scheduler.status(2).state, TaskState::running);
    scheduler.cancel(2);
    go.set_value();
    EXPECT_EQ(scheduler.wait(2).state, TaskState::cancelled);
    EXPECT_EQ(scheduler.wait(1).state, TaskState::completed);
    EXPECT_EQ(ran, 0);
  }
}

// Tasks launch until they are refused while others submit and cancel; no launch begins once
// cancel() has returned, whatever state the task was in.
TEST(SchedulerThread, NothingIsLaunchedOnceCancelHasReturned) {
  constexpr int kTasks = 200, kAtOnce = 4;
  test::FakeDriver fake;
  for (const bool is_gpu : {false, true}) {
    std::unique_ptr<Executor> executor;
    if (is_gpu)
      executor = std::make_unique<CudaExecutor>(0, 2);
    else
      executor = std::make_unique<CpuExecutor>(kAtOnce);
    Scheduler scheduler({.max_running = kAtOnce}, std::move(executor));
    std::vector<std::atomic<int>> launched(kTasks);
    const auto run = [&](int first) {
      for (int i = first; i < kTasks; i += 2) {
        const TaskId id = TaskId(i + 1);
        scheduler.submit({.id = id, .stream = i}, [&, i](StreamRef) {
          for (;;) {
            dispatch::refuse_cancelled("launch");
            ++launched[size_t(i)];
            std::this_thread::yield();
          }
        });
        for (int turn = 0; turn < i % 40; ++turn) std::this_thread::yield();
        scheduler.cancel(id);
        const int at_cancel = launched[size_t(i)];
        EXPECT_EQ(scheduler.wait(id).state, TaskState::cancelled);
        EXPECT_LE(launched[size_t(i)], at_cancel + 1) << "task " << id;  // one was being made
      }
    };
    std::jthread other([&] { run(1); });
    run(0);
  }
}

TEST(SchedulerThread, CloseWaitsNoLongerThanItMay) {
  std::promise<void> go;
  Scheduler scheduler({}, std::make_unique<CpuExecutor>());
  scheduler.submit({.id = 1}, [&](StreamRef) { go.get_future().wait(); });
  EXPECT_FALSE(scheduler.close(std::chrono::milliseconds(1)));
  EXPECT_FALSE(scheduler.close(Time(0)));
  go.set_value();
  EXPECT_TRUE(scheduler.close());
  EXPECT_EQ(scheduler.status(1).state, TaskState::completed);
}

TEST(SchedulerThread, AnInterruptEndsTheWaitOfClose) {
  std::promise<void> go;
  Scheduler scheduler({}, std::make_unique<CpuExecutor>());
  scheduler.submit({.id = 1}, [&](StreamRef) { go.get_future().wait(); });
  const InterruptCheck outer = set_interrupt_check([] { return true; });
  test::expect_error(
      ErrorKind::cancelled, [&] { scheduler.close(); },
      "the call was interrupted; its outputs are undefined");
  set_interrupt_check(outer);
  go.set_value();
  EXPECT_TRUE(scheduler.close());
}

TEST(SchedulerThread, WorkAndEndsMaySubmitWork) {
  Ends ends;
  Scheduler scheduler({}, std::make_unique<CpuExecutor>());
  scheduler.submit(
      {.id = 1}, [&](StreamRef) { scheduler.submit({.id = 2}, kNothing, ends.tell()); },
      [&](const TaskStatus&) { scheduler.submit({.id = 3}, kNothing, ends.tell()); });
  EXPECT_EQ(ends.wait(2).size(), 2u);
}

TEST(SchedulerShell, AForkedChildCanDestroyIt) {
  if (!kForksWork) GTEST_SKIP() << "ThreadSanitizer";
  auto scheduler = std::make_unique<Scheduler>(Options{}, std::make_unique<CpuExecutor>(2));
  EXPECT_EQ(scheduler->submit({.id = 1}, kNothing).verdict, Verdict::admit);
  EXPECT_EQ(scheduler->wait(1).state, TaskState::completed);
  EXPECT_EQ(test::in_child([&] {
              bool right = scheduler->statistics().completed == 1;
              right &= test::is_unsupported([&] { scheduler->submit({.id = 2}, kNothing); });
              right &= test::is_unsupported([&] { scheduler->wait(1); });
              scheduler->close();
              scheduler.reset();
              return right ? 0 : 1;
            }),
            0);
  EXPECT_EQ(scheduler->submit({.id = 3}, kNothing).verdict, Verdict::admit);
}

}  // namespace
}  // namespace tensorcraft::scheduler

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/scheduler/core.hpp"

#include "tests/support/expect_error.hpp"

#include <functional>
#include <limits>

#include <gtest/gtest.h>

namespace tensorcraft::scheduler {
namespace {

using Ids = std::vector<TaskId>;
constexpr Time kNow{1000};

Actions submit(Core& core, Task task, Time now = kNow) {
  return core.step(Submit{std::move(task)}, now);
}

// The answer to a submission, as "verdict reason".
std::string answer(Core& core, Task task, Time now = kNow) {
  const Decision decision = submit(core, std::move(task), now).admission.value();
  return join(to_string(decision.verdict), " ", to_string(decision.reason));
}

TaskState state(const Core& core, TaskId id) { return core.status(id).state; }

// Completes what runs until nothing does; the tasks in the order in which they started.
Ids drain(Core& core, const Ids& running, Time now = kNow) {
  Ids order = running;
  for (size_t i = 0; i < order.size(); ++i)
    for (const TaskId id : core.step(Completed{order[i]}, now).start) order.push_back(id);
  return order;
}

TEST(Scheduler, r07_admission_releases) {
  Core core({.memory_bytes = 1000, .max_running = 8});
  for (TaskId id = 1; id <= 20; ++id) {
    EXPECT_EQ(answer(core, {.id = id, .memory_bytes = 400}), "admit none");
    core.step(Completed{id}, kNow);
  }
  EXPECT_EQ(core.statistics().completed, 20u);
  EXPECT_EQ(core.statistics().reserved_bytes, 0u);
}

TEST(Scheduler, r08_reservation_limits_run) {
  Core core({.memory_bytes = 1000, .max_running = 8});
  EXPECT_EQ(answer(core, {.id = 1, .memory_bytes = 800}), "admit none");
  for (TaskId id = 2; id <= 5; ++id)
    EXPECT_EQ(answer(core, {.id = id, .memory_bytes = 800}), "queue memory");
  EXPECT_EQ(core.statistics().running, 1u);
  EXPECT_EQ(core.statistics().reserved_bytes, 800u);
  EXPECT_EQ(drain(core, {1}), (Ids{1, 2, 3, 4, 5}));
}

TEST(Scheduler, r09_failed_dependency) {
  Core core({});
  submit(core, {.id = 1, .name = "load"});
  submit(core, {.id = 2, .name = "run", .dependencies = {1}});
  submit(core, {.id = 3, .dependencies = {2, 2}});
  const Actions actions = core.step(Failed{1, "no file"}, kNow);
  EXPECT_EQ(actions.ended, (Ids{1, 2, 3}));
  EXPECT_TRUE(actions.start.empty());
  EXPECT_EQ(core.status(1).error, "no file");
  EXPECT_EQ(core.status(2).error, "it depends on task 1 (\"load\"), which failed");
  EXPECT_EQ(core.status(3).error, "it depends on task 2 (\"run\"), which failed");
  EXPECT_EQ(answer(core, {.id = 4, .dependencies = {1}}), "reject dependencies");
  EXPECT_EQ(answer(core, {.id = 5, .dependencies = {77}}), "reject dependencies");
}

TEST(Scheduler, r10_dependency_cycle) {
  Core core({});
  EXPECT_EQ(answer(core, {.id = 1, .dependencies = {2}}), "reject dependencies");
  EXPECT_EQ(answer(core, {.id = 2, .dependencies = {1}}), "reject dependencies");
  EXPECT_EQ(answer(core, {.id = 3, .dependencies = {3}}), "reject dependencies");
  EXPECT_EQ(core.statistics().pending, 0u);
}

TEST(Scheduler, r11_duplicate_id) {
  Core core({.memory_bytes = 1000, .max_running = 8});
  submit(core, {.id = 1, .memory_bytes = 300});
  EXPECT_EQ(answer(core, {.id = 1, .memory_bytes = 300}), "reject duplicate_id");
  EXPECT_EQ(core.statistics().reserved_bytes, 300u);
  core.step(Completed{1}, kNow);
  EXPECT_EQ(core.statistics().reserved_bytes, 0u);
  EXPECT_EQ(answer(core, {.id = 1}), "reject duplicate_id");
  core.step(Forget{1}, kNow);
  EXPECT_EQ(answer(core, {.id = 1}), "admit none");
}

TEST(Scheduler, AnswersEachSubmissionAsTheTableSays) {
  Core core({.memory_bytes = 1000,
             .max_running = 2,
             .max_pending = 3,
             .bytes_per_second = 1e9,
             .shares = {{1, 0.5}},
             .window = Time(1000)});
  EXPECT_EQ(answer(core, {.id = 1, .memory_bytes = 1001}), "reject memory");
  EXPECT_EQ(answer(core, {.id = 1, .stream = 1, .traffic_bytes = 501}), "reject bandwidth");
  EXPECT_EQ(answer(core, {.id = 1, .stream = 1, .traffic_bytes = 500}), "admit none");
  EXPECT_EQ(answer(core, {.id = 2, .stream = 1, .traffic_bytes = 1}), "queue bandwidth");
  EXPECT_EQ(answer(core, {.id = 3, .memory_bytes = 1000, .dependencies = {1}}),
            "queue dependencies");
  EXPECT_EQ(answer(core, {.id = 4, .memory_bytes = 600}), "admit none");
  EXPECT_EQ(answer(core, {.id = 5}), "queue slots");
  EXPECT_EQ(answer(core, {.id = 6}), "reject queue_full");
  EXPECT_EQ(answer(core, {.id = 7, .qos = Qos::guaranteed}), "queue slots");  // has its own queue
  EXPECT_EQ(core.log().back(), (Decision{kNow, 7, Verdict::queue, Reason::slots}));
  EXPECT_EQ(core.statistics().rejected, 3u);
}

TEST(Scheduler, OrdersByClassThenByPolicyThenBySubmission) {
  Core core({});
  submit(core, {.id = 1});
  submit(core, {.id = 2, .qos = Qos::best_effort, .priority = 9});
  submit(core, {.id = 3});
  submit(core, {.id = 4, .policy = Policy::sjf, .run_estimate = Time(20)});
  submit(core, {.id = 5, .policy = Policy::sjf, .run_estimate = Time(10)});
  submit(core, {.id = 6, .policy = Policy::priority, .priority = -1});
  submit(core, {.id = 7, .policy = Policy::priority, .priority = 5});
  submit(core, {.id = 8});
  submit(core, {.id = 9, .qos = Qos::guaranteed});
  EXPECT_EQ(drain(core, {1}), (Ids{1, 9, 7, 6, 5, 4, 3, 8, 2}));
}

TEST(Scheduler, LetsASmallTaskPassOneThatLacksMemoryUntilThatIsOutOfPatience) {
  Core core({.memory_bytes = 1000, .max_running = 8, .patience = Time(100)});
  submit(core, {.id = 1, .memory_bytes = 500});
  EXPECT_EQ(answer(core, {.id = 2, .memory_bytes = 900}), "queue memory");
  EXPECT_EQ(answer(core, {.id = 3, .memory_bytes = 100}, kNow + Time(99)), "admit none");
  EXPECT_EQ(answer(core, {.id = 4, .qos = Qos::guaranteed}, kNow + Time(100)), "queue order");
  EXPECT_TRUE(core.step(Completed{3}, kNow + Time(100)).start.empty());
  EXPECT_EQ(core.step(Completed{1}, kNow + Time(100)).start, (Ids{2, 4}));
}

TEST(Scheduler, AnOldBacklogDoesNotShutOutAHigherClass) {
  Core core({.patience = Time(100)});
  for (TaskId id = 1; id <= 9; ++id) submit(core, {.id = id, .qos = Qos::best_effort});
  const Time later = kNow + Time(1000);  // all of them are out of patience
  submit(core, {.id = 10, .qos = Qos::guaranteed}, later);
  EXPECT_EQ(core.step(Completed{1}, later).start, Ids{2});
  EXPECT_EQ(core.step(Completed{2}, later).start, Ids{10});
}

TEST(Scheduler, ATaskOutOfPatienceIsNotPassedByALaterOneOfAHigherClass) {
  Core core({.memory_bytes = 10, .max_running = 2, .patience = Time(100)});
  submit(core, {.id = 1, .memory_bytes = 10}, Time(0));
  submit(core, {.id = 2, .qos = Qos::best_effort, .memory_bytes = 10}, Time(0));
  submit(core, {.id = 3, .qos = Qos::guaranteed, .memory_bytes = 10}, Time(1));
  core.step(Tick{}, Time(100));
  core.step(Tick{}, Time(300));
  EXPECT_EQ(drain(core, {1}, Time(300)), (Ids{1, 2, 3}));
}

TEST(Scheduler, ABacklogOfAHigherClassDoesNotStarveALowerOne) {
  Core core({.patience = Time(1000)});
  submit(core, {.id = 1, .qos = Qos::guaranteed}, Time(0));
  submit(core, {.id = 2, .qos = Qos::best_effort}, Time(0));
  TaskId id = 3;
  for (Time now(0); state(core, 2) == TaskState::pending; now += Time(10)) {
    ASSERT_LE(now.count(), 1010);
    submit(core, {.id = id, .qos = Qos::guaranteed}, now);
    core.step(Completed{id == 3 ? 1 : id - 1}, now);
    ++id;
  }
}

TEST(Scheduler, DependenciesOrder) {
  Core core({.max_running = 8});
  submit(core, {.id = 1});
  submit(core, {.id = 2});
  EXPECT_EQ(answer(core, {.id = 3, .dependencies = {1, 2, 1}}), "queue dependencies");
  EXPECT_TRUE(core.step(Completed{1}, kNow).start.empty());
  EXPECT_EQ(core.step(Completed{2}, kNow).start, Ids{3});
  EXPECT_EQ(answer(core, {.id = 4, .dependencies = {1, 2}}), "admit none");
}

TEST(Scheduler, CancelsAPendingTaskAtOnceAndAllThatDependOnIt) {
  Core core({});
  submit(core, {.id = 1});
  submit(core, {.id = 2, .name = "b"});
  submit(core, {.id = 3, .dependencies = {1, 2}});
  EXPECT_EQ(core.step(Cancel{2}, kNow).ended, (Ids{2, 3}));
  EXPECT_EQ(state(core, 2), TaskState::cancelled);
  EXPECT_EQ(core.status(3).error, "it depends on task 2 (\"b\"), which was cancelled");
  EXPECT_TRUE(core.step(Cancel{2}, kNow).ended.empty());
  core.step(Forget{3}, kNow);
  submit(core, {.id = 3, .name = "another"});  // is not taken for the one that waited for task 1
  EXPECT_EQ(core.step(Completed{1}, kNow).start, Ids{3});
}

TEST(Scheduler, ARunningTaskKeepsItsMemoryUntilTheExecutorLetsGoOfIt) {
  for (const Event& report : {Event(Completed{1}), Event(Failed{1, "stopped"})}) {
    Core core({.memory_bytes = 10});
    submit(core, {.id = 1, .memory_bytes = 10});
    EXPECT_EQ(core.step(Cancel{1}, kNow).stop, Ids{1});
    EXPECT_TRUE(core.step(Cancel{1}, kNow).stop.empty());
    EXPECT_EQ(state(core, 1), TaskState::running);
    EXPECT_EQ(core.statistics().available_bytes, 0u);
    EXPECT_EQ(core.step(report, kNow).ended, Ids{1});
    EXPECT_EQ(state(core, 1), TaskState::cancelled);
    EXPECT_EQ(core.statistics().available_bytes, 10u);
  }
}

// Brings task 1 into a state.
const std::pair<TaskState, std::function<void(Core&)>> kWays[] = {
    {TaskState::pending, [](Core&) {}},
    {TaskState::running, [](Core& core) { core.step(Completed{9}, kNow); }},
    {TaskState::completed,
     [](Core& core) { core.step(Completed{9}, kNow), core.step(Completed{1}, kNow); }},
    {TaskState::failed,
     [](Core& core) { core.step(Completed{9}, kNow), core.step(Failed{1, ""}, kNow); }},
    {TaskState::cancelled, [](Core& core) { core.step(Cancel{1}, kNow); }},
};

TEST(Scheduler, RefusesEachEventThatTheStateDoesNotAllowAndChangesNothing) {
  using enum TaskState;
  const std::pair<Event, std::set<TaskState>> allowed[] = {
      {Completed{1}, {running}},
      {Failed{1, "x"}, {running}},
      {Cancel{1}, {pending, running, cancelled}},
      {Forget{1}, {completed, failed, cancelled}}};
  for (const auto& [from, reach] : kWays)
    for (const auto& [event, states] : allowed) {
      Core core({.memory_bytes = 10});
      submit(core, {.id = 9});
      submit(core, {.id = 1, .memory_bytes = 10});
      reach(core);
      ASSERT_EQ(state(core, 1), from);
      if (states.contains(from)) {
        EXPECT_NO_THROW(core.step(event, kNow)) << to_string(from) << " event " << event.index();
        continue;
      }
      const Statistics before = core.statistics();
      try {
        core.step(event, kNow);
        ADD_FAILURE() << to_string(from) << " event " << event.index();
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::value) << e.what();
      }
      EXPECT_EQ(state(core, 1), from);
      EXPECT_EQ(core.statistics().pending, before.pending);
      EXPECT_EQ(core.statistics().running, before.running);
      EXPECT_EQ(core.statistics().reserved_bytes, before.reserved_bytes);
    }
}

TEST(Scheduler, NamesTheMistake) {
  Core core({});
  submit(core, {.id = 1, .name = "a"});
  submit(core, {.id = 2, .name = "b"});
  test::expect_error(
      ErrorKind::key, [&] { core.step(Cancel{5}, kNow); }, "scheduler: there is no task 5");
  test::expect_error(ErrorKind::key, [&] { core.status(5); }, "scheduler: there is no task 5");
  test::expect_error(
      ErrorKind::value, [&] { core.step(Failed{2, ""}, kNow); },
      "scheduler: task 2 (\"b\") is pending; only a running task can complete or fail");
  test::expect_error(
      ErrorKind::value, [&] { core.step(Forget{1}, kNow); },
      "scheduler: task 1 (\"a\") is running; only a task that has ended can be forgotten");
  test::expect_error(
      ErrorKind::value, [&] { core.step(Tick{}, Time(999)); },
      "scheduler: time went back from 1000 to 999 ns");
}

TEST(Scheduler, RefusesOptionsThatNoTaskCouldRunUnder) {
  const auto refused = [](const Options& options, const std::string& text) {
    test::expect_error(ErrorKind::value, [&] { Core core(options); }, text);
  };
  refused({.max_running = 0}, "scheduler: max_running must be at least 1, got 0");
  refused({.max_pending = 0}, "scheduler: max_pending must be at least 1, got 0");
  refused({.window = Time(0)}, "scheduler: window must be above 0 ns, got 0");
  refused({.patience = Time(-1)}, "scheduler: patience must be 0 ns or more, got -1");
  refused({.bytes_per_second = 1, .shares = {{0, 0}}},
          "scheduler: each share must be in (0, 1], got 0");
  refused({.bytes_per_second = 1, .shares = {{0, .6}, {1, .6}}},
          "scheduler: the shares together must be at most 1, got 1.2");
  refused({.shares = {{0, 1}}},
          "scheduler: the bandwidth, in bytes a second, must be above 0 if streams have shares of "
          "it, got 0");
}

TEST(Scheduler, CountsAndAverages) {
  Core core({.memory_bytes = 100});
  submit(core, {.id = 1, .memory_bytes = 60}, Time(0));
  submit(core, {.id = 2, .memory_bytes = 50}, Time(10));
  submit(core, {.id = 3}, Time(10));
  submit(core, {.id = 4}, Time(10));
  core.step(Completed{1}, Time(40));    // waited 0, ran 40
  core.step(Failed{2, "x"}, Time(50));  // waited 30, ran 10
  core.step(Cancel{4}, Time(50));
  const Statistics s = core.statistics();  // task 3 waited 40 and runs
  EXPECT_EQ(s.pending, 0u);
  EXPECT_EQ(s.running, 1u);
  EXPECT_EQ(s.completed, 1u);
  EXPECT_EQ(s.failed, 1u);
  EXPECT_EQ(s.cancelled, 1u);
  EXPECT_EQ(s.reserved_bytes, 0u);
  EXPECT_EQ(s.available_bytes, 100u);
  EXPECT_EQ(s.average_wait.count(), 70 / 3);
  EXPECT_EQ(s.average_run.count(), 25);
  const TaskStatus& second = core.status(2);
  EXPECT_EQ(second.submitted.count(), 10);
  EXPECT_EQ(second.started.count(), 40);
  EXPECT_EQ(second.ended.count(), 50);
}

TEST(Scheduler, LogsEachDecisionAndDropsTheOldest) {
  Core core({.log_capacity = 3});
  submit(core, {.id = 1}, Time(1));
  submit(core, {.id = 2}, Time(2));
  submit(core, {.id = 2}, Time(3));
  core.step(Completed{1}, Time(4));
  EXPECT_EQ(std::vector(core.log().begin(), core.log().end()),
            (std::vector<Decision>{{Time(2), 2, Verdict::queue, Reason::slots},
                                   {Time(3), 2, Verdict::reject, Reason::duplicate_id},
                                   {Time(4), 2, Verdict::admit, Reason::none}}));
}

TEST(Scheduler, GivesTheWholeRangeOfMemoryWithoutWrappingAround) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  Core core({.memory_bytes = kMax, .max_running = 4});
  EXPECT_EQ(answer(core, {.id = 1, .memory_bytes = 2}), "admit none");
  EXPECT_EQ(answer(core, {.id = 2, .memory_bytes = kMax}), "queue memory");
  EXPECT_EQ(answer(core, {.id = 3, .memory_bytes = kMax - 2}), "admit none");
}

}  // namespace
}  // namespace tensorcraft::scheduler

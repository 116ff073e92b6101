// SPDX-License-Identifier: Apache-2.0
// Checks what holds after every step, whatever happens: on random histories, and on all histories
// of three tasks.
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/runtime/scheduler/core.hpp"

#include <algorithm>
#include <map>

#include <rapidcheck.h>
#include <gtest/gtest.h>

namespace tensorcraft::scheduler {
namespace {

// Follows a machine by its answers and actions alone.
struct Model {
  explicit Model(const Options& o) : options(o), core(o) {}

  Options options;
  Core core;
  std::map<TaskId, TaskState> states;
  std::map<TaskId, Task> tasks;

  std::string problem;  // the first one found
  void require(bool holds, std::string_view what) {
    if (!holds && problem.empty()) problem = what;
  }

  bool completed(TaskId id) const {
    const auto found = states.find(id);
    return found != states.end() && found->second == TaskState::completed;
  }

  // Applies an event; one that the machine refuses must change nothing.
  void step(const Event& event, Time now) {
    const Statistics before = core.statistics();
    Actions actions;
    try {
      actions = core.step(event, now);
    } catch (const Error&) {
      const Statistics after = core.statistics();
      require(before.pending == after.pending && before.running == after.running &&
                  before.reserved_bytes == after.reserved_bytes,
              "a refused event changed something");
      return;
    }
    if (const auto* submit = std::get_if<Submit>(&event))
      if (actions.admission.value().verdict != Verdict::reject) {
        require(!states.contains(submit->task.id), "an id was taken twice");
        states[submit->task.id] = TaskState::pending;
        tasks[submit->task.id] = submit->task;
      }
    for (const TaskId id : actions.ended) follow(id, core.status(id).state);
    for (const TaskId id : actions.start) {
      follow(id, TaskState::running);
      for (const TaskId dependency : tasks[id].dependencies)
        require(completed(dependency), "a task started before its dependency completed");
    }
    check();
  }

  void follow(TaskId id, TaskState to) {
    require(states.contains(id) && is_legal(states[id], to), "an edge that does not exist");
    states[id] = to;
  }

  void check() {
    std::map<TaskState, size_t> count;
    uint64_t reserved = 0;
    for (const auto& [id, state] : states) {
      ++count[state];
      if (state == TaskState::running) reserved += tasks[id].memory_bytes;
      require(core.status(id).state == state, "the actions do not tell the states");
    }
    const Statistics s = core.statistics();
    require(reserved <= options.memory_bytes, "more reserved than there is");
    require(s.reserved_bytes == reserved, "a terminal state did not release");
    require(s.available_bytes == options.memory_bytes - reserved,
            "available and reserved disagree");
    require(s.pending == count[TaskState::pending], "pending");
    require(s.running == count[TaskState::running], "running");
    require(s.completed == count[TaskState::completed], "completed");
    require(s.failed == count[TaskState::failed], "failed");
    require(s.cancelled == count[TaskState::cancelled], "cancelled");
    require(int(s.running) <= options.max_running, "more tasks run than may");
    // An idle machine with a task that needs nothing but memory would wait for ever.
    for (const auto& [id, state] : states)
      if (s.running == 0 && state == TaskState::pending && options.shares.empty())
        require(
            !std::ranges::all_of(tasks[id].dependencies, [&](TaskId d) { return completed(d); }),
            "an idle machine holds back a task that fits");
  }

  // Completes all that runs, on and on: every task must come to an end.
  void drain(Time now) {
    for (size_t round = 0; round <= 2 * states.size(); ++round) {
      for (const auto& [id, state] : std::map(states))
        if (state == TaskState::running) step(Completed{id}, now);
      now += options.window;
      step(Tick{}, now);
    }
    for (const auto& [id, state] : states) require(is_terminal(state), "a task never ended");
  }
};

// Over the whole range from the first history on.
template <class T>
rc::Gen<T> range(T low, T high) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(low, high));
}

Task any_task() {
  return {.id = *range<TaskId>(1, 24),
          .policy = Policy(*range(0, 3)),
          .qos = Qos(*range(0, 3)),
          .priority = *range(-3, 4),
          .run_estimate = Time(*range(0, 50)),
          .memory_bytes = *range<uint64_t>(0, 1100),
          .stream = *range(0, 3),
          .traffic_bytes = *range<uint64_t>(0, 60),
          .dependencies = *rc::gen::weightedOneOf<std::vector<TaskId>>(
              {{2, rc::gen::just(std::vector<TaskId>{})},
               {1, rc::gen::container<std::vector<TaskId>>(2, range<TaskId>(1, 24))}})};
}

Event any_event() {
  const int kind = *range(0, 10);
  if (kind < 5) return Submit{any_task()};
  const TaskId id = *range<TaskId>(1, 24);
  if (kind < 7) return Completed{id};
  if (kind < 8) return Failed{id, "x"};
  if (kind < 9) return Cancel{id};
  return Tick{};
}

TEST(SchedulerModel, HoldsOnRandomHistories) {
  const bool held = rc::check("invariants of the scheduler", [] {
    Options options{.memory_bytes = 1000,
                    .max_running = *range(1, 5),
                    .max_pending = *range<size_t>(1, 6),
                    .window = Time(100),
                    .patience = Time(*range(0, 200))};
    if (*rc::gen::arbitrary<bool>()) {
      options.bytes_per_second = 1e9;
      options.shares = {{0, 0.5}, {1, 0.25}};
    }
    Model model(options);
    Time now(0);
    const int steps = *range(20, 200);
    for (int i = 0; i < steps; ++i) {
      now += Time(*range(0, 30));
      model.step(any_event(), now);
    }
    model.drain(now);
    if (!model.problem.empty()) RC_FAIL(model.problem);
  });
  EXPECT_TRUE(held);
}

// All orders of submitting, completing, failing and cancelling three tasks, two of which exclude
// each other and one of which depends on the first. The machine is a value, so each branch is a
// copy.
void explore(const Model& model, const std::vector<Event>& left, int64_t& histories) {
  ASSERT_EQ(model.problem, "");
  ++histories;
  Model idle = model;
  idle.drain(Time(0));
  ASSERT_EQ(idle.problem, "");
  for (size_t i = 0; i < left.size(); ++i) {
    Model next = model;
    next.step(left[i], Time(0));
    std::vector<Event> rest = left;
    rest.erase(rest.begin() + int64_t(i));
    explore(next, rest, histories);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(SchedulerModel, HoldsOnAllHistoriesOfThreeTasks) {
  const std::vector<Event> submits = {Submit{{.id = 1, .memory_bytes = 600}},
                                      Submit{{.id = 2, .memory_bytes = 600}},
                                      Submit{{.id = 3, .memory_bytes = 300, .dependencies = {1}}}};
  int64_t histories = 0;
  for (const std::vector<Event>& ends :
       std::vector<std::vector<Event>>{{Completed{1}, Completed{2}, Completed{3}},
                                       {Failed{1, "x"}, Completed{2}, Cancel{3}},
                                       {Cancel{1}, Completed{1}, Failed{2, "x"}},
                                       {Completed{1}, Cancel{2}, Cancel{3}},
                                       {Completed{1}, Cancel{3}, Failed{3, "x"}}}) {
    std::vector<Event> all = submits;
    all.insert(all.end(), ends.begin(), ends.end());
    explore(Model({.memory_bytes = 1000, .max_running = 2}), all, histories);
  }
  EXPECT_EQ(histories, 5 * 1957);  // all orders of all subsets of six events
}

// Ten thousand tasks that wait, in every class, under a stream of higher ones: each that fits
// starts.
TEST(SchedulerModel, EveryTaskOfALongQueueStarts) {
  constexpr TaskId kTasks = 10'000;
  Core core({.memory_bytes = 1000, .max_running = 4, .max_pending = kTasks});
  std::vector<TaskId> running;
  for (TaskId id = 1; id <= kTasks; ++id)
    for (const TaskId started :
         core.step(Submit{{.id = id, .qos = Qos(id % 3), .memory_bytes = id * 37 % 1001}}, Time(0))
             .start)
      running.push_back(started);
  for (size_t i = 0; i < running.size(); ++i)
    for (const TaskId started : core.step(Completed{running[i]}, Time(int64_t(i))).start)
      running.push_back(started);
  EXPECT_EQ(core.statistics().completed, kTasks);
}

}  // namespace
}  // namespace tensorcraft::scheduler

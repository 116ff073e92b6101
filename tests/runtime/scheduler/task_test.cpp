// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/scheduler/task.hpp"

#include "tests/support/expect_error.hpp"

#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace tensorcraft::scheduler {
namespace {

using enum TaskState;
constexpr TaskState kStates[] = {pending, running, completed, failed, cancelled};

TEST(TaskState, HasTheseEdgesAndNoOther) {
  const std::set<std::pair<TaskState, TaskState>> edges = {
      {pending, running},   {pending, failed}, {pending, cancelled},
      {running, completed}, {running, failed}, {running, cancelled}};
  for (const TaskState from : kStates)
    for (const TaskState to : kStates) {
      TaskStatus status{.task = {.id = 3, .name = "copy"}, .state = from};
      if (edges.contains({from, to})) {
        status.move_to(to, Time(7));
        EXPECT_EQ(status.state, to);
        EXPECT_EQ((to == running ? status.started : status.ended).count(), 7);
      } else {
        test::expect_error(
            ErrorKind::value, [&] { status.move_to(to, Time(7)); },
            join("scheduler: task 3 (\"copy\") cannot go from ", to_string(from), " to ",
                 to_string(to)));
        EXPECT_EQ(status.state, from);
        EXPECT_EQ(status.started.count() + status.ended.count(), 0);
      }
    }
}

TEST(TaskState, IsTerminalWhereNoEdgeLeaves) {
  for (const TaskState from : kStates) {
    int edges = 0;
    for (const TaskState to : kStates) edges += is_legal(from, to);
    EXPECT_EQ(is_terminal(from), edges == 0) << to_string(from);
  }
}

TEST(Qos, HasThePrioritiesOfTheThreeClasses) {
  EXPECT_EQ(priority_of(Qos::guaranteed), 100);
  EXPECT_EQ(priority_of(Qos::burstable), 50);
  EXPECT_EQ(priority_of(Qos::best_effort), 0);
}

TEST(Task, SaysItsWords) {
  EXPECT_EQ(to_string(Policy::sjf), "sjf");
  EXPECT_EQ(to_string(Policy::priority), "priority");
  EXPECT_EQ(to_string(Qos::best_effort), "best_effort");
  EXPECT_EQ(to_string(Qos::guaranteed), "guaranteed");
  EXPECT_EQ(to_string(cancelled), "cancelled");
}

}  // namespace
}  // namespace tensorcraft::scheduler

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/scheduler/task.hpp"

#include "tensorcraft/core/error.hpp"

namespace tensorcraft::scheduler {

std::string_view to_string(TaskState state) {
  constexpr std::string_view kNames[] = {"pending", "running", "completed", "failed", "cancelled"};
  return kNames[size_t(state)];
}

std::string_view to_string(Policy policy) {
  constexpr std::string_view kNames[] = {"fifo", "sjf", "priority"};
  return kNames[size_t(policy)];
}

std::string_view to_string(Qos qos) {
  constexpr std::string_view kNames[] = {"best_effort", "burstable", "guaranteed"};
  return kNames[size_t(qos)];
}

bool is_legal(TaskState from, TaskState to) {
  switch (from) {
    case TaskState::pending:
      return to == TaskState::running || to == TaskState::failed || to == TaskState::cancelled;
    case TaskState::running:
      return is_terminal(to);
    default:
      return false;
  }
}

void TaskStatus::move_to(TaskState to, Time now) {
  if (!is_legal(state, to))
    fail(ErrorKind::value, "scheduler: ", describe(task), " cannot go from ", to_string(state),
         " to ", to_string(to));
  state = to;
  (to == TaskState::running ? started : ended) = now;
}

std::string describe(const Task& task) { return join("task ", task.id, " (\"", task.name, "\")"); }

}  // namespace tensorcraft::scheduler

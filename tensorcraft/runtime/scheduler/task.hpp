// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::scheduler {

// Chosen by the submitter; unique among the tasks that a scheduler knows.
using TaskId = uint64_t;
// A duration, or the time since whatever moment the clock counts from.
using Time = std::chrono::nanoseconds;

// The state of a task; the last three are terminal.
enum class TaskState : uint8_t { pending, running, completed, failed, cancelled };
// How a task is ranked within its class: by submission, by run estimate (shortest first), or by
// Task::priority (highest first). Tasks ranked by priority go before those ranked by estimate, and
// these before those ranked by submission; equals go in the order of submission.
enum class Policy : uint8_t { fifo, sjf, priority };
// The class of service; a higher one goes first.
enum class Qos : uint8_t { best_effort, burstable, guaranteed };

// The names, as messages spell them.
std::string_view to_string(TaskState state);
std::string_view to_string(Policy policy);
std::string_view to_string(Qos qos);

constexpr int priority_of(Qos qos) { return 50 * int(qos); }  // 0, 50, 100
// Has it ended?
constexpr bool is_terminal(TaskState state) { return state >= TaskState::completed; }
// Is there an edge? From pending to running, failed and cancelled; from running to each terminal
// state; none leaves a terminal state.
bool is_legal(TaskState from, TaskState to);

// The submitter describes a task with this.
struct Task {
  // The name is for messages; equal ones are no mistake.
  TaskId id = 0;
  std::string name;
  Policy policy = Policy::fifo;
  Qos qos = Qos::burstable;
  int priority = 0;                  // under Policy::priority
  Time run_estimate{0};              // under Policy::sjf
  uint64_t memory_bytes = 0;         // reserved from the start to the terminal state
  int stream = 0;                    // whose share of the bandwidth it uses
  uint64_t traffic_bytes = 0;        // what it moves; 0 is not paced
  std::vector<TaskId> dependencies;  // must have completed before it starts
};

// The state of a task and its times.
struct TaskStatus {
  // Times are 0 until they come.
  Task task;
  TaskState state = TaskState::pending;
  bool cancel_requested = false;  // running, and cancelled as soon as the executor lets go of it
  Time submitted{0}, started{0}, ended{0};
  std::string error;  // why it failed

  // Enters a state and stamps the time. Kind value, with nothing changed, if there is no edge.
  void move_to(TaskState to, Time now);
};

// `task 3 ("copy")`, for messages.
std::string describe(const Task& task);

}  // namespace tensorcraft::scheduler

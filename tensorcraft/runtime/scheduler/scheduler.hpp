// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/scheduler/core.hpp"
#include "tensorcraft/runtime/scheduler/executor.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tensorcraft::scheduler {

// The time since the process's steady clock began.
Time steady_now();

// The machine of core.hpp with a clock and an executor. It has no thread of its own: tasks start
// inside submit(), cancel(), advance() and wait(). Safe for concurrent use, from within a task's
// work too. The destructor is the executor's, and drops what is pending. Errors are those of
// Core::step.
class Scheduler {
 public:
  using Clock = std::function<Time()>;  // never goes back
  // Kind value for options that no task could run under.
  Scheduler(Options options, std::unique_ptr<Executor> executor, Clock clock = steady_now);

  // The answer; rejected work is dropped.
  Decision submit(Task task, Work work);
  void cancel(TaskId id);
  void forget(TaskId id);
  // Takes in what has ended and starts what can start, without waiting.
  void advance();
  // Advances until the task has ended. It must not be called from a task's work.
  TaskStatus wait(TaskId id);

  // As those of Core, of this moment.
  TaskStatus status(TaskId id) const;
  Statistics statistics() const;
  std::vector<Decision> log() const;

 private:
  Actions step(const Event& event, Work work = nullptr);

  mutable std::mutex
      mutex_;  // guards core_, works_ and wake_; not held while an executor is called
  Core core_;
  Clock clock_;
  std::unordered_map<TaskId, Work> works_;  // of pending tasks
  std::optional<Time> wake_;
  std::unique_ptr<Executor> executor_;  // last: its destructor may wait for work
};

}  // namespace tensorcraft::scheduler

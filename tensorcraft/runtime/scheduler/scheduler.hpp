// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/device.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/runtime/scheduler/core.hpp"
#include "tensorcraft/runtime/scheduler/executor.hpp"
#include "tensorcraft/runtime/status/status.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <unordered_map>
#include <vector>

namespace tensorcraft::scheduler {

// The time since the process's steady clock began.
Time steady_now();

// Returns the bytes that tasks on a device may reserve together: what its pool may hold, or on the
// host its memory.
uint64_t reservable_bytes(Device device);

// Who takes in what has ended and starts what can start.
enum class Drive : uint8_t {
  thread,   // one of the scheduler's own; the works of a GPU's tasks run on it
  callers,  // those of submit(), cancel(), advance() and wait(), on their own threads
};

// The machine of core.hpp with a clock and an executor. Tasks are handed to the executor in the
// order in which they start. Safe for concurrent use, from within a task's work too. The destructor
// closes it; it must not be called from a task's work. Errors are those of Core::step. The child of
// a fork can only destroy it and ask what was: what needs its threads fails with kind unsupported.
class Scheduler {
 public:
  using Clock = std::function<Time()>;  // never goes back
  // Called once a task that was not rejected has ended, by the thread that found out; throws
  // nothing.
  using OnEnd = std::function<void(const TaskStatus&)>;
  // Kind value for options that no task could run under.
  Scheduler(Options options, std::unique_ptr<Executor> executor, Clock clock = steady_now,
            Drive drive = Drive::thread);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // The answer; rejected work is dropped.
  Decision submit(Task task, Work work, OnEnd on_end = nullptr);
  // Once it has returned, the task's work is not called, and what that launches is refused: kind
  // cancelled. A launch that is being made goes on.
  void cancel(TaskId id);
  void forget(TaskId id);
  // Takes in what has ended and starts what can start, without waiting.
  void advance();
  // Cancels what is pending and, with a thread of its own, waits until all that runs has ended, at
  // most so long; whether it has. What is submitted later is refused with kind value. It must not
  // be called from a task's work. Kind cancelled if the thread is interrupted while it waits.
  bool close(std::optional<Time> at_most = std::nullopt);
  // Returns when the task has ended. It must not be called from a task's work.
  TaskStatus wait(TaskId id);

  // As those of Core, of this moment.
  TaskStatus status(TaskId id) const;
  Statistics statistics() const;
  std::vector<Decision> log() const;

 private:
  using StopFlag = std::shared_ptr<std::atomic<bool>>;
  struct Begin {
    TaskId id;
    int stream;
    Work work;
    StopFlag stopped;
  };
  static Work stoppable(TaskId id, StopFlag stopped, Work work);
  Actions step(const Event& event, Work work = nullptr, OnEnd on_end = nullptr);
  void cancel_pending();
  void take_in();
  void begin();
  void go_on();
  void drive(const std::stop_token& stop);
  void forget_threads();
  void refuse_in_child() const;

  mutable ForkSafeMutex mutex_;  // guards all below; not held while an executor or OnEnd is called
  std::condition_variable_any changed_;
  Core core_;
  Clock clock_;
  std::unordered_map<TaskId, Work> works_;        // of pending tasks
  std::unordered_map<TaskId, OnEnd> on_end_;      // of all that have not ended
  std::unordered_map<TaskId, StopFlag> stopped_;  // of those that run
  std::deque<Begin> begin_;                       // started, and not yet handed to the executor
  bool beginning_ = false;                        // a thread hands them over
  bool poked_ = false;                            // the driver has something to look at
  bool closed_ = false;
  bool is_of_parent_ = false;
  std::optional<Time> wake_;
  std::unique_ptr<Executor> executor_;  // its destructor may wait for work
  std::jthread driver_;
  status::Source source_;  // ends before those
  const InForkedChild in_child_{[this] { forget_threads(); }};
};

}  // namespace tensorcraft::scheduler

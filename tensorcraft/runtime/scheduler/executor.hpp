// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"
#include "tensorcraft/runtime/scheduler/task.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tensorcraft::scheduler {

// The work of a task. On a GPU it enqueues on the stream it is given and does not wait for it; on
// the host it does the work and ignores the stream. What it throws fails the task. What it captures
// lives until the task has ended.
using Work = std::function<void(StreamRef)>;

// How a task ended.
struct Report {
  TaskId id = 0;                     // of the task
  std::optional<std::string> error;  // none: it completed
};

// Runs what the machine started. Each started task gets exactly one report. Safe for concurrent
// use.
class Executor {
 public:
  virtual ~Executor() = default;
  // Begins a task without waiting for it; throws nothing that its work throws. `stream` is
  // Task::stream.
  virtual void start(TaskId id, int stream, Work work) = 0;
  // The task is no longer wanted. One whose work waits for its turn is reported as failed; any
  // other goes on.
  virtual void stop(TaskId id) = 0;
  // Returns the tasks that ended since the last call, in the order in which that was seen.
  virtual std::vector<Report> take_reports() = 0;
  // Returns when there is a report to take, when woken, or after `at_most`, no more than a day.
  virtual void wait(Time at_most) = 0;
  // Ends a wait() of another thread, or the next one.
  virtual void wake() = 0;
};

// Simulates a GPU with threads of its own. The destructor drops what has not begun and waits for
// the rest.
class CpuExecutor final : public Executor {
 public:
  // Kind value for less than one thread.
  explicit CpuExecutor(int threads = 1);
  ~CpuExecutor() override;
  void start(TaskId id, int stream, Work work) override;
  void stop(TaskId id) override;
  std::vector<Report> take_reports() override;
  void wait(Time at_most) override;
  void wake() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Runs each task's work at once on the calling thread, on one of its streams, and takes the task
// for ended when an event recorded after the work is done. The destructor waits for the GPU.
class CudaExecutor final : public Executor {
 public:
  // Task::stream counts modulo `streams`. Kind value for less than one stream or an unknown device.
  // Memory that a task's work takes in the order of its stream must go back before the executor.
  explicit CudaExecutor(int device = 0, int streams = 1);
  // Streams of one device, which outlive the executor. Kind value for none, and for several
  // devices.
  explicit CudaExecutor(std::vector<StreamRef> streams);
  ~CudaExecutor() override;
  void start(TaskId id, int stream, Work work) override;
  // Nothing: no work waits, and what is enqueued cannot be called back.
  void stop(TaskId) override {}
  std::vector<Report> take_reports() override;
  void wait(Time at_most) override;
  void wake() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tensorcraft::scheduler

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/scheduler/scheduler.hpp"

#include <algorithm>
#include <utility>

namespace tensorcraft::scheduler {

Time steady_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

Scheduler::Scheduler(Options options, std::unique_ptr<Executor> executor, Clock clock)
    : core_(std::move(options)), clock_(std::move(clock)), executor_(std::move(executor)) {}

// One event, and what the machine asks for in answer.
Actions Scheduler::step(const Event& event, Work work) {
  struct Begin {
    TaskId id;
    int stream;
    Work work;
  };
  std::vector<Begin> begin;
  std::vector<Work> dropped;  // goes after the lock
  Actions actions;
  {
    const std::lock_guard lock(mutex_);
    actions = core_.step(event, clock_());
    wake_ = actions.wake;
    if (actions.admission && actions.admission->verdict != Verdict::reject)
      works_[actions.admission->id] = std::move(work);
    for (const TaskId id : actions.start) {
      auto own = works_.extract(id);
      begin.push_back({id, core_.status(id).task.stream, std::move(own.mapped())});
    }
    for (const TaskId id : actions.ended)
      if (auto own = works_.extract(id)) dropped.push_back(std::move(own.mapped()));
  }
  for (Begin& task : begin) executor_->start(task.id, task.stream, std::move(task.work));
  for (const TaskId id : actions.stop) executor_->stop(id);
  return actions;
}

Decision Scheduler::submit(Task task, Work work) {
  return step(Submit{std::move(task)}, std::move(work)).admission.value();
}

void Scheduler::cancel(TaskId id) { step(Cancel{id}); }

void Scheduler::forget(TaskId id) { step(Forget{id}); }

void Scheduler::advance() {
  for (Report& report : executor_->take_reports()) {
    if (report.error)
      step(Failed{report.id, std::move(*report.error)});
    else
      step(Completed{report.id});
  }
  step(Tick{});
}

TaskStatus Scheduler::wait(TaskId id) {
  constexpr Time kLongest = std::chrono::milliseconds(10);  // another thread may take the reports
  while (true) {
    advance();
    Time at_most = kLongest;
    {
      const std::lock_guard lock(mutex_);
      if (const TaskStatus& status = core_.status(id); is_terminal(status.state)) return status;
      if (wake_) at_most = std::clamp(*wake_ - clock_(), Time(0), kLongest);
    }
    executor_->wait(at_most);
  }
}

TaskStatus Scheduler::status(TaskId id) const {
  const std::lock_guard lock(mutex_);
  return core_.status(id);
}

Statistics Scheduler::statistics() const {
  const std::lock_guard lock(mutex_);
  return core_.statistics();
}

std::vector<Decision> Scheduler::log() const {
  const std::lock_guard lock(mutex_);
  return {core_.log().begin(), core_.log().end()};
}

}  // namespace tensorcraft::scheduler

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/scheduler/scheduler.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/interrupt.hpp"
#include "tensorcraft/core/start_thread.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/runtime/dispatch/dispatch.hpp"
#include "tensorcraft/runtime/memory/allocator.hpp"
#include "tensorcraft/runtime/trace/trace_log.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace tensorcraft::scheduler {

Time steady_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

uint64_t reservable_bytes(Device device) {
  if (!device.is_cuda()) return uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
  const int64_t quota = allocator(device).statistics().quota;
  return quota > 0 ? uint64_t(quota) : device_info(device).memory_bytes;
}

namespace {

// Returns the numbers of a scheduler that `tensorcraft top` shows.
status::Item item_of(const Statistics& now) {
  const auto seconds = [](Time time) { return std::chrono::duration<double>(time).count(); };
  return {"scheduler",
          "tasks",
          {{"running", double(now.running)},
           {"pending", double(now.pending)},
           {"completed", double(now.completed)},
           {"failed", double(now.failed)},
           {"rejected", double(now.rejected)},
           {"reserved_bytes", double(now.reserved_bytes)},
           {"wait_s", seconds(now.average_wait)},
           {"run_s", seconds(now.average_run)}}};
}

// Writes the decisions of a step into a trace of the process.
void trace_step(TraceLog& log, const Core& core, const Event& event, const Actions& actions) {
  constexpr std::string_view kDecisions = "scheduler decisions";
  const auto name = [&](TaskId id) { return describe(core.status(id).task); };
  if (const auto& answer = actions.admission)
    log.instant(kDecisions,
                join(to_string(answer->verdict), " ", describe(std::get<Submit>(event).task)),
                TraceLog::now(), {{"reason", std::string(to_string(answer->reason))}});
  for (const TaskId id : actions.start) {
    if (actions.admission && actions.admission->id == id) continue;  // admitted at once
    log.instant(kDecisions, "start " + name(id), TraceLog::now());
  }
  for (const TaskId id : actions.ended) {
    const TaskStatus& status = core.status(id);
    if (status.started == Time(0)) {
      log.instant(kDecisions, join(to_string(status.state), " ", name(id)), TraceLog::now());
      continue;
    }
    const std::chrono::duration<double, std::milli> waited = status.started - status.submitted;
    log.span(join("tasks of stream ", status.task.stream), name(id), status.started, status.ended,
             {{"class", std::string(to_string(status.task.qos))},
              {"state", std::string(to_string(status.state))},
              {"waited_ms", join(waited.count())}});
  }
}

}  // namespace

Scheduler::Scheduler(Options options, std::unique_ptr<Executor> executor, Clock clock, Drive drive)
    : core_(std::move(options)),
      clock_(std::move(clock)),
      executor_(std::move(executor)),
      source_([this] { return std::vector{item_of(statistics())}; }) {
  if (drive == Drive::thread)
    driver_ = start_thread("Scheduler", "close schedulers that are done",
                           [this](const std::stop_token& stop) { this->drive(stop); });
}

Scheduler::~Scheduler() {
  cancel_pending();
  if (!driver_.joinable()) return;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return core_.statistics().running == 0; });
  }
  driver_.request_stop();
  go_on();
  driver_.join();
}

bool Scheduler::close(std::optional<Time> at_most) {
  if (!driver_.joinable()) at_most = Time(0);  // nobody would end what runs
  cancel_pending();
  std::unique_lock lock(mutex_);
  return wait_or_interrupt(
      changed_, lock, [this] { return core_.statistics().running == 0; }, at_most);
}

// From now on nothing is taken, and nothing that waits starts.
void Scheduler::cancel_pending() {
  std::vector<TaskId> pending;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& [id, work] : works_) pending.push_back(id);
  }
  for (const TaskId id : pending) try {
      cancel(id);
    } catch (const std::exception&) {  // it started or ended meanwhile
    }
}

// Launches of the work are the task's. Once it is stopped they are refused, or the work is not
// called at all.
Work Scheduler::stoppable(TaskId id, StopFlag stopped, Work work) {
  return [id, stopped = std::move(stopped), work = std::move(work)](StreamRef stream) {
    if (*stopped) fail(ErrorKind::cancelled, "stopped before it began");
    const dispatch::TaskScope task(id, stopped.get());
    work(stream);
  };
}

// The threads of the parent stayed behind, and what they hold is theirs.
void Scheduler::forget_threads() {
  is_of_parent_ = true;
  std::construct_at(&driver_);
  std::construct_at(&changed_);
  std::construct_at(&executor_);
}

void Scheduler::refuse_in_child() const {
  if (is_of_parent_) fail_in_forked_child("Scheduler");
}

// One event, and what the machine asks for in answer.
Actions Scheduler::step(const Event& event, Work work, OnEnd on_end) {
  std::vector<Work> dropped;  // goes after the lock
  std::vector<std::pair<OnEnd, TaskStatus>> ended;
  Actions actions;
  {
    const std::lock_guard lock(mutex_);
    refuse_in_child();
    if (closed_ && std::holds_alternative<Submit>(event))
      fail(ErrorKind::value, "Scheduler: it is closed; make another one");
    actions = core_.step(event, clock_());
    wake_ = actions.wake;
    if (TraceLog* const log = TraceLog::of_process()) trace_step(*log, core_, event, actions);
    if (actions.admission && actions.admission->verdict != Verdict::reject) {
      works_[actions.admission->id] = std::move(work);
      if (on_end) on_end_[actions.admission->id] = std::move(on_end);
    }
    for (const TaskId id : actions.start) {
      const StopFlag& stopped = stopped_[id] = std::make_shared<std::atomic<bool>>(false);
      begin_.push_back({id, core_.status(id).task.stream,
                        stoppable(id, stopped, std::move(works_.extract(id).mapped())), stopped});
    }
    for (const TaskId id : actions.stop) *stopped_.at(id) = true;
    for (const TaskId id : actions.ended) {
      stopped_.erase(id);
      if (auto own = works_.extract(id)) dropped.push_back(std::move(own.mapped()));
      if (auto own = on_end_.extract(id))
        ended.emplace_back(std::move(own.mapped()), core_.status(id));
    }
  }
  for (const TaskId id : actions.stop) executor_->stop(id);
  for (const auto& [tell, status] : ended) tell(status);
  if (!actions.ended.empty()) changed_.notify_all();
  return actions;
}

// Hands what was started to the executor, in that order: one thread does it for all.
void Scheduler::begin() {
  std::unique_lock lock(mutex_);
  if (beginning_) return;
  beginning_ = true;
  while (!begin_.empty()) {
    Begin task = std::move(begin_.front());
    begin_.pop_front();
    lock.unlock();
    executor_->start(task.id, task.stream, std::move(task.work));
    if (*task.stopped) executor_->stop(task.id);  // which came before the executor knew it
    lock.lock();
  }
  beginning_ = false;
}

// After a step of a caller's.
void Scheduler::go_on() {
  if (!driver_.joinable()) return begin();
  {
    const std::lock_guard lock(mutex_);
    poked_ = true;
  }
  changed_.notify_all();
  executor_->wake();
}

void Scheduler::drive(const std::stop_token& stop) {
  constexpr Time kLongest = std::chrono::hours(1);
  while (true) {
    std::unique_lock lock(mutex_);
    poked_ = false;
    if (stop.stop_requested()) return;  // asked for before the poke that is forgotten here
    lock.unlock();
    take_in();
    begin();
    lock.lock();
    const Time at_most = wake_ ? std::clamp(*wake_ - clock_(), Time(0), kLongest) : kLongest;
    if (core_.statistics().running == 0) {
      changed_.wait_for(lock, at_most, [this] { return poked_; });
    } else if (!poked_) {
      lock.unlock();
      executor_->wait(at_most);  // wake() ends it
    }
  }
}

Decision Scheduler::submit(Task task, Work work, OnEnd on_end) {
  const Actions done = step(Submit{std::move(task)}, std::move(work), std::move(on_end));
  go_on();
  return done.admission.value();
}

void Scheduler::cancel(TaskId id) {
  step(Cancel{id});
  go_on();
}

void Scheduler::forget(TaskId id) {
  step(Forget{id});
  go_on();
}

void Scheduler::advance() {
  take_in();
  go_on();
}

void Scheduler::take_in() {
  refuse_in_child();
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
  if (driver_.joinable()) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_terminal(core_.status(id).state); });
    return core_.status(id);
  }
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

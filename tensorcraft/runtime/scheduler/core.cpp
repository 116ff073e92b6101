// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/scheduler/core.hpp"

#include "tensorcraft/core/error.hpp"

#include <algorithm>
#include <cmath>

namespace tensorcraft::scheduler {
namespace {

void check(const Options& options) {
  const auto require = [](bool holds, std::string_view what, auto got) {
    if (!holds) fail(ErrorKind::value, "scheduler: ", what, ", got ", got);
  };
  require(options.max_running > 0, "max_running must be at least 1", options.max_running);
  require(options.max_pending > 0, "max_pending must be at least 1", options.max_pending);
  require(options.window > Time(0), "window must be above 0 ns", options.window.count());
  require(options.patience >= Time(0), "patience must be 0 ns or more", options.patience.count());
  double sum = 0;
  for (const auto& [stream, share] : options.shares) {
    require(share > 0 && share <= 1, "each share must be in (0, 1]", share);
    sum += share;
  }
  require(sum <= 1 + 1e-9, "the shares together must be at most 1", sum);
  require(options.shares.empty() || options.bytes_per_second > 0,
          "the bandwidth, in bytes a second, must be above 0 if streams have shares of it",
          options.bytes_per_second);
}

int64_t key_of(const Task& task) {
  switch (task.policy) {
    case Policy::sjf:
      return task.run_estimate.count();
    case Policy::priority:
      return -int64_t(task.priority);
    default:
      return 0;
  }
}

Time average(Time total, uint64_t count) { return count ? total / int64_t(count) : Time(0); }

}  // namespace

std::string_view to_string(Verdict verdict) {
  constexpr std::string_view kNames[] = {"admit", "queue", "reject"};
  return kNames[size_t(verdict)];
}

std::string_view to_string(Reason reason) {
  constexpr std::string_view kNames[] = {"none",         "memory", "bandwidth", "queue_full",
                                         "dependencies", "slots",  "order",     "duplicate_id"};
  return kNames[size_t(reason)];
}

Core::Core(Options options) : options_(std::move(options)) { check(options_); }

Actions Core::step(const Event& event, Time now) {
  if (now < now_)
    fail(ErrorKind::value, "scheduler: time went back from ", now_.count(), " to ", now.count(),
         " ns");
  Actions actions;
  std::visit([&](const auto& e) { apply(e, now, actions); }, event);
  now_ = now;
  start_ready(now, actions);
  return actions;
}

void Core::apply(const Submit& event, Time now, Actions& actions) {
  const Task& task = event.task;
  start_ready(now, actions);  // what time alone lets start leaves the queue first
  if (const Reason refused = refusal(task); refused != Reason::none) {
    ++ended_.rejected;
    decide({.at = now, .id = task.id, .reason = refused}, actions);
    return;
  }
  enqueue(task, now);
  start_ready(now, actions);
  const Record& record = find(task.id);
  if (record.status.state == TaskState::running) {
    actions.admission = Decision{.at = now, .id = task.id, .verdict = Verdict::admit};
    return;
  }
  Reason reason = record.blocked_by;
  if (record.waiting_for > 0)
    reason = Reason::dependencies;
  else if (reason == Reason::none)  // the round ended before it came to this task
    reason = running_ == options_.max_running ? Reason::slots : Reason::order;
  decide({.at = now, .id = task.id, .verdict = Verdict::queue, .reason = reason}, actions);
}

void Core::apply(const Completed& event, Time now, Actions& actions) {
  const bool unwanted = find_running(event.id).status.cancel_requested;
  end(event.id, unwanted ? TaskState::cancelled : TaskState::completed, {}, now, actions);
}

void Core::apply(const Failed& event, Time now, Actions& actions) {
  const bool unwanted = find_running(event.id).status.cancel_requested;
  end(event.id, unwanted ? TaskState::cancelled : TaskState::failed, event.error, now, actions);
}

void Core::apply(const Cancel& event, Time now, Actions& actions) {
  TaskStatus& status = find(event.id).status;
  if (status.state == TaskState::cancelled || status.cancel_requested) return;
  if (status.state != TaskState::running)
    return end(event.id, TaskState::cancelled, {}, now, actions);
  status.cancel_requested = true;
  actions.stop.push_back(event.id);
}

void Core::apply(const Forget& event, Time, Actions&) {
  const TaskStatus& status = find(event.id).status;
  if (!is_terminal(status.state))
    fail(ErrorKind::value, "scheduler: ", describe(status.task), " is ", to_string(status.state),
         "; only a task that has ended can be forgotten");
  records_.erase(event.id);
}

Core::Record& Core::find(TaskId id) {
  const auto found = records_.find(id);
  if (found == records_.end()) fail(ErrorKind::key, "scheduler: there is no task ", id);
  return found->second;
}

Core::Record& Core::find_running(TaskId id) {
  Record& record = find(id);
  if (record.status.state != TaskState::running)
    fail(ErrorKind::value, "scheduler: ", describe(record.status.task), " is ",
         to_string(record.status.state), "; only a running task can complete or fail");
  return record;
}

const TaskStatus& Core::status(TaskId id) const { return const_cast<Core*>(this)->find(id).status; }

// Why the task can never be accepted, or not now.
Reason Core::refusal(const Task& task) const {
  if (records_.contains(task.id)) return Reason::duplicate_id;
  if (task.memory_bytes > options_.memory_bytes) return Reason::memory;
  if (!cost_of(task)) return Reason::bandwidth;
  for (const TaskId id : task.dependencies) {
    const auto found = records_.find(id);
    if (found == records_.end()) return Reason::dependencies;
    const TaskState state = found->second.status.state;
    if (is_terminal(state) && state != TaskState::completed) return Reason::dependencies;
  }
  if (pending_[size_t(task.qos)] >= options_.max_pending) return Reason::queue_full;
  return Reason::none;
}

// How long the share of the task's stream takes to move its traffic; nothing beyond one window.
std::optional<Time> Core::cost_of(const Task& task) const {
  const auto share = options_.shares.find(task.stream);
  if (share == options_.shares.end()) return Time(0);
  const double rate = share->second * options_.bytes_per_second;
  const double ns = std::ceil(double(task.traffic_bytes) / rate * 1e9);
  if (ns > double(options_.window.count())) return std::nullopt;
  return Time(int64_t(ns));
}

void Core::enqueue(const Task& task, Time now) {
  Record& record = records_[task.id];
  record.status.task = task;
  record.status.submitted = now;
  record.rank = {1, -int(task.qos), -int(task.policy), key_of(task), next_order_++};
  record.cost = *cost_of(task);
  for (const TaskId id : task.dependencies) {
    Record& dependency = find(id);
    if (dependency.status.state == TaskState::completed) continue;
    dependency.dependants.push_back(task.id);
    ++record.waiting_for;
  }
  ++pending_[size_t(task.qos)];
  if (record.waiting_for == 0) make_ready(record, now);
}

void Core::make_ready(Record& record, Time now) {
  record.ready = now;
  ready_.emplace(record.rank, record.status.task.id);
  patient_.emplace(now, record.status.task.id);
}

// Puts the longest ready task in front; at most one in each span of patience, or an old backlog
// would shut out a higher class.
void Core::promote(Time now) {
  if (patient_.empty() || now < next_promotion_) return;
  const auto [ready, id] = *patient_.begin();
  if (now - ready < options_.patience) return;
  Record& record = find(id);
  patient_.erase(patient_.begin());
  ready_.erase(record.rank);
  record.rank = {0, 0, 0, ready.count(), std::get<4>(record.rank)};
  ready_.emplace(record.rank, id);
  next_promotion_ = now + options_.patience;
}

// One round: starts what can start, in order, and says when pacing lets the next one go.
void Core::start_ready(Time now, Actions& actions) {
  promote(now);
  actions.wake.reset();
  std::set<int> paced;  // a stream stays in order: nothing passes the task that it holds back
  for (auto next = ready_.begin(); next != ready_.end() && running_ < options_.max_running;) {
    Record& record = find((next++)->second);
    const int stream = record.status.task.stream;
    const bool behind = record.cost > Time(0) && paced.contains(stream);
    record.blocked_by = behind ? Reason::bandwidth : blocked(record, now);
    if (record.blocked_by == Reason::none) {
      start(record, now, actions);
    } else if (record.blocked_by == Reason::memory) {
      if (is_promoted(record.rank)) return;
    } else if (paced.insert(stream).second) {
      actions.wake = std::min(actions.wake.value_or(Time::max()), opens_at(record));
    }
  }
}

Reason Core::blocked(const Record& record, Time now) const {
  if (record.status.task.memory_bytes > options_.memory_bytes - reserved_bytes_)
    return Reason::memory;
  return record.cost > Time(0) && opens_at(record) > now ? Reason::bandwidth : Reason::none;
}

// A stream's share is booked as time: what was started is paid at most one window ahead.
Time Core::opens_at(const Record& record) const {
  const auto paid = paid_until_.find(record.status.task.stream);
  return paid == paid_until_.end() ? Time::min() : paid->second + record.cost - options_.window;
}

void Core::start(Record& record, Time now, Actions& actions) {
  const Task& task = record.status.task;
  record.status.move_to(TaskState::running, now);
  ready_.erase(record.rank);
  patient_.erase({record.ready, task.id});
  --pending_[size_t(task.qos)];
  ++running_;
  reserved_bytes_ += task.memory_bytes;
  if (record.cost > Time(0)) {
    Time& paid_until = paid_until_.try_emplace(task.stream, now).first->second;
    paid_until = std::max(paid_until, now) + record.cost;
  }
  ++started_;
  total_wait_ += now - record.status.submitted;
  decide({.at = now, .id = task.id, .verdict = Verdict::admit}, actions);
  actions.start.push_back(task.id);
}

// Ends one task and, if it did not complete, all that depend on it.
void Core::end(TaskId id, TaskState state, std::string error, Time now, Actions& actions) {
  Record& first = find(id);
  close(first, state, now);
  if (state == TaskState::failed) first.status.error = std::move(error);
  std::vector<TaskId> ended{id};
  for (size_t i = 0; i < ended.size(); ++i) {
    Record& cause = find(ended[i]);
    for (const TaskId next : std::exchange(cause.dependants, {})) {
      Record& dependant = find(next);
      if (cause.status.state == TaskState::completed) {
        if (--dependant.waiting_for == 0) make_ready(dependant, now);
      } else if (dependant.status.state == TaskState::pending) {
        close(dependant, TaskState::failed, now);
        dependant.status.error = join("it depends on ", describe(cause.status.task), ", which ",
                                      cause.status.state == TaskState::failed ? "" : "was ",
                                      to_string(cause.status.state));
        ended.push_back(next);
      }
    }
  }
  actions.ended.insert(actions.ended.end(), ended.begin(), ended.end());
}

// Enters a terminal state and gives back what the task held.
void Core::close(Record& record, TaskState state, Time now) {
  const Task& task = record.status.task;
  const bool ran = record.status.state == TaskState::running;
  record.status.move_to(state, now);
  if (ran) {
    --running_;
    reserved_bytes_ -= task.memory_bytes;
    ++ran_;
    total_run_ += now - record.status.started;
  } else {
    --pending_[size_t(task.qos)];
    ready_.erase(record.rank);
    patient_.erase({record.ready, task.id});
    for (const TaskId id : task.dependencies)
      if (const auto found = records_.find(id); found != records_.end())
        std::erase(found->second.dependants, task.id);
  }
  ++(state == TaskState::completed ? ended_.completed
     : state == TaskState::failed  ? ended_.failed
                                   : ended_.cancelled);
}

void Core::decide(Decision decision, Actions& actions) {
  if (decision.verdict != Verdict::admit) actions.admission = decision;
  if (options_.log_capacity == 0) return;
  if (log_.size() == options_.log_capacity) log_.pop_front();
  log_.push_back(decision);
}

Statistics Core::statistics() const {
  Statistics result = ended_;
  for (const size_t count : pending_) result.pending += count;
  result.running = size_t(running_);
  result.reserved_bytes = reserved_bytes_;
  result.available_bytes = options_.memory_bytes - reserved_bytes_;
  result.average_wait = average(total_wait_, started_);
  result.average_run = average(total_run_, ran_);
  return result;
}

}  // namespace tensorcraft::scheduler

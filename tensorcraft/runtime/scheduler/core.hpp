// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/scheduler/task.hpp"

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>

namespace tensorcraft::scheduler {

// The bounds of a scheduler.
struct Options {
  uint64_t memory_bytes = 0;  // what all running tasks together may reserve
  int max_running = 1;        // tasks at a time
  size_t max_pending = 1024;  // of each class, so that a flood of one class cannot shut out another
  // A stream with a share may start tasks whose traffic is that share of the bandwidth; at most
  // what fits in one window in a burst. A stream without one is not paced.
  double bytes_per_second = 0;
  std::map<int, double> shares;                 // by stream, of 1
  Time window = std::chrono::milliseconds(10);  // of traffic, in a burst
  // The longest ready task, once ready for this long, goes before every class, one task in each
  // such time; while it lacks memory no other starts. So each task that fits starts at last.
  Time patience = std::chrono::seconds(1);
  size_t log_capacity = 4096;  // the oldest decisions are dropped
};

// The answer to a submission.
enum class Verdict : uint8_t { admit, queue, reject };
// Queued for: memory, bandwidth, dependencies that have not completed, slots (max_running), order
// (the task that ran out of patience goes first). Rejected for: memory above the total, bandwidth
// beyond one window, a full queue, dependencies that are unknown or did not complete, a known id.
enum class Reason : uint8_t {
  none,
  memory,
  bandwidth,
  queue_full,
  dependencies,
  slots,
  order,
  duplicate_id,
};
// The names, as messages spell them.
std::string_view to_string(Verdict verdict);
std::string_view to_string(Reason reason);

// One decision on a task; a queued task gets a second one when it is admitted.
struct Decision {
  // When, on which task, what, and why.
  Time at{0};
  TaskId id = 0;
  Verdict verdict = Verdict::reject;
  Reason reason = Reason::none;
  friend bool operator==(const Decision&, const Decision&) = default;
};

// The scheduler as a whole.
struct Statistics {
  // Numbers of tasks, bytes reserved now and still free, and times.
  size_t pending = 0, running = 0;                                  // now
  uint64_t completed = 0, failed = 0, cancelled = 0, rejected = 0;  // since the beginning
  uint64_t reserved_bytes = 0, available_bytes = 0;
  Time average_wait{0};  // from submission to start, of all started tasks
  Time average_run{0};   // from start to end, of all that ran and ended
};

// These structs are the events.
struct Submit {
  Task task;  // what is submitted
};
struct Completed {  // the executor is done with a running task
  TaskId id;        // which one
};
struct Failed {       // the same, without success
  TaskId id;          // which one
  std::string error;  // why, for the user
};
// Ends a pending task at once. A running one keeps its memory until the executor lets go of it, as
// a kernel cannot be called back; how it ended then no longer counts. Again is no mistake.
struct Cancel {
  TaskId id;  // which one
};
// Drops what is known of a task in a terminal state: its id may be used again, and nothing may
// depend on it any more.
struct Forget {
  TaskId id;  // which one
};
struct Tick {};  // only time has passed
using Event = std::variant<Submit, Completed, Failed, Cancel, Forget, Tick>;

// Lists what the owner of the machine has to do.
struct Actions {
  std::optional<Decision> admission;  // the answer to Submit
  std::vector<TaskId> start;          // to hand to the executor, in this order
  std::vector<TaskId> stop;           // running and no longer wanted
  std::vector<TaskId> ended;          // entered a terminal state
  std::optional<Time> wake;           // Tick is due then; replaces what an earlier step said
};

// The scheduler as a value: no thread, no clock, no input or output; equal events at equal times
// give equal actions. Not safe for concurrent use. Dependencies name tasks submitted before, so
// there are no cycles. What fails pulls all tasks that depend on it along.
class Core {
 public:
  // Kind value for options that no task could run under.
  explicit Core(Options options);

  // Applies one event at time `now`, which never goes back. Kind key for an unknown id, kind value
  // for an edge that does not exist; an event that throws changes nothing. A rejected task is no
  // error: it is in the answer and in the log, and nothing else is kept of it.
  Actions step(const Event& event, Time now);

  // Kind key for an unknown id; valid until the next step.
  const TaskStatus& status(TaskId id) const;
  Statistics statistics() const;
  const std::deque<Decision>& log() const { return log_; }

 private:
  // Promoted (0) or not (1), class, policy, the policy's key, order of submission; least goes
  // first.
  using Rank = std::tuple<int, int, int, int64_t, uint64_t>;
  static bool is_promoted(const Rank& rank) { return std::get<0>(rank) == 0; }
  struct Record {
    TaskStatus status;
    Rank rank;
    Time ready{0};                     // when the last dependency completed
    size_t waiting_for = 0;            // dependencies that have not completed
    Reason blocked_by = Reason::none;  // what the last round found
    Time cost{0};                      // how long its stream's share takes to move its traffic
    std::vector<TaskId> dependants;
  };

  void apply(const Submit& event, Time now, Actions& actions);
  void apply(const Completed& event, Time now, Actions& actions);
  void apply(const Failed& event, Time now, Actions& actions);
  void apply(const Cancel& event, Time now, Actions& actions);
  void apply(const Forget& event, Time now, Actions& actions);
  void apply(const Tick&, Time, Actions&) {}

  Record& find(TaskId id);
  Record& find_running(TaskId id);
  Reason refusal(const Task& task) const;
  std::optional<Time> cost_of(const Task& task) const;
  void enqueue(const Task& task, Time now);
  void make_ready(Record& record, Time now);
  void promote(Time now);
  void start_ready(Time now, Actions& actions);
  Reason blocked(const Record& record, Time now) const;
  Time opens_at(const Record& record) const;
  void start(Record& record, Time now, Actions& actions);
  void end(TaskId id, TaskState state, std::string error, Time now, Actions& actions);
  void close(Record& record, TaskState state, Time now);
  void decide(Decision decision, Actions& actions);

  Options options_;
  Time now_ = Time::min();
  std::unordered_map<TaskId, Record> records_;
  std::map<Rank, TaskId> ready_;               // pending, all dependencies completed
  std::set<std::pair<Time, TaskId>> patient_;  // those of them not promoted, by Record::ready
  Time next_promotion_ = Time::min();
  std::map<int, Time> paid_until_;   // by stream: when its share has moved all that was started
  std::array<size_t, 3> pending_{};  // by class
  uint64_t next_order_ = 0;
  int running_ = 0;
  uint64_t reserved_bytes_ = 0, started_ = 0, ran_ = 0;
  Time total_wait_{0}, total_run_{0};
  Statistics ended_;  // its counts of terminal states and rejections
  std::deque<Decision> log_;
};

}  // namespace tensorcraft::scheduler

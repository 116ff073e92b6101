// SPDX-License-Identifier: Apache-2.0
#include "scheduler.hpp"

#include "arguments.hpp"
#include "background.hpp"
#include "gil.hpp"
#include "stream.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/log.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/runtime/scheduler/scheduler.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tensorcraft::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using scheduler::Decision;
using scheduler::Drive;
using scheduler::Executor;
using scheduler::Options;
using scheduler::Reason;
using scheduler::Scheduler;
using scheduler::Task;
using scheduler::TaskId;
using scheduler::TaskStatus;
using scheduler::Time;
using scheduler::Verdict;

Time to_time(double seconds, const char* name) {
  if (!(seconds >= 0 && seconds <= 1e9))
    fail(ErrorKind::value, "Scheduler: ", name, " must be 0 to 1e9 seconds, got ", seconds);
  return std::chrono::duration_cast<Time>(std::chrono::duration<double>(seconds));
}
double seconds(Time time) { return std::chrono::duration<double>(time).count(); }

uint64_t to_bytes(nb::handle object, const char* name) {
  const int64_t bytes = to_int64(object, join("Scheduler: ", name));
  if (bytes < 0) fail(ErrorKind::value, "Scheduler: ", name, " must be at least 0, got ", bytes);
  return uint64_t(bytes);
}

int to_int(nb::handle object, const char* name) {
  const int64_t value = to_int64(object, join("Scheduler: ", name));
  if (value != int(value))
    fail(ErrorKind::value, "Scheduler: ", name, " must fit 32 bits, got ", value);
  return int(value);
}

int to_count(nb::handle object, const char* name) {
  const int64_t count = to_int64(object, join("Scheduler: ", name));
  if (count < 1 || count > 1 << 20)
    fail(ErrorKind::value, "Scheduler: ", name, " must be 1 to 1048576, got ", count);
  return int(count);
}

template <class Name>
Name to_name(const std::string& text, const char* what, std::initializer_list<Name> all) {
  std::string known;
  for (const Name name : all) {
    if (to_string(name) == text) return name;
    known += (known.empty() ? "" : ", ") + std::string(to_string(name));
  }
  fail(ErrorKind::value, "Scheduler: ", what, " must be one of ", known, "; got ", text);
}

// A scheduler with the streams that its tasks run on. Tensors of tasks are freed in their order.
struct Running {
  Running(Options options, std::vector<std::unique_ptr<PyStream>> taken, Device device, int count)
      : streams(std::move(taken)), scheduler(std::move(options), executor(device, count)) {}

  const std::vector<std::unique_ptr<PyStream>> streams;
  Scheduler scheduler;
  bool ends_here = false;  // where its last owner is, who has no GIL

 private:
  std::unique_ptr<Executor> executor(Device device, int count) const {
    if (!device.is_cuda()) return std::make_unique<scheduler::CpuExecutor>(count);
    std::vector<StreamRef> refs;
    for (const auto& one : streams) refs.push_back(one->stream);
    return std::make_unique<scheduler::CudaExecutor>(std::move(refs));
  }
};

// Each call of the object owns it too, so that another thread's close() takes it from no one.
std::shared_ptr<Running> owned(std::unique_ptr<Running> running) {
  const pid_t process = getpid();
  return {running.release(), [process](Running* gone) {
            if (getpid() != process) return;  // a fork's child has none of its threads
            std::shared_ptr<Running> last(gone);
            if (!last->ends_here) end_elsewhere(std::move(last));
          }};
}

class SchedulerObject;
thread_local const SchedulerObject* task_of = nullptr;  // whose task this thread runs

// tc.Scheduler has one.
class SchedulerObject {
 public:
  SchedulerObject(nb::handle device, nb::handle memory, nb::handle max_running,
                  nb::handle max_pending, double bandwidth, const nb::dict& shares, double window,
                  double patience, nb::handle streams)
      : device_(device.is_none() ? default_device() : to_device(device)) {
    Options options;
    const uint64_t most = scheduler::reservable_bytes(device_);
    options.memory_bytes = memory.is_none() ? most : to_bytes(memory, "memory");
    if (options.memory_bytes > most)
      fail(ErrorKind::value, "Scheduler: memory must be at most the ", most, " bytes that ",
           device_, " may hold, got ", options.memory_bytes,
           device_.is_cuda() ? "; tc.memory.set_quota raises that" : "");
    options.max_running = to_count(max_running, "max_running");
    options.max_pending = size_t(to_count(max_pending, "max_pending"));
    options.bytes_per_second = bandwidth;
    for (const auto& [stream, share] : shares)
      options.shares[to_int(stream, "a stream of shares")] = to_double(share, "a share");
    options.window = to_time(window, "window");
    options.patience = to_time(patience, "patience");
    const int count = to_count(streams, "streams");
    std::vector<std::unique_ptr<PyStream>> taken;
    for (int i = 0; device_.is_cuda() && i < count; ++i)
      taken.push_back(std::make_unique<PyStream>(device_.index));
    running_ =
        owned(std::make_unique<Running>(std::move(options), std::move(taken), device_, count));
  }
  SchedulerObject(const SchedulerObject&) = delete;
  SchedulerObject& operator=(const SchedulerObject&) = delete;

  // `work` is called once, and `ended` with the state and the error once the task has ended.
  std::pair<std::string, std::string> submit(TaskId id, std::string name, const std::string& policy,
                                             const std::string& qos, nb::handle priority,
                                             double run_estimate, nb::handle memory,
                                             nb::handle stream, nb::handle traffic,
                                             const std::vector<TaskId>& after, nb::object work,
                                             nb::object ended) {
    using scheduler::Policy;
    using scheduler::Qos;
    Task task{.id = id,
              .name = std::move(name),
              .policy = to_name(policy, "policy", {Policy::fifo, Policy::sjf, Policy::priority}),
              .qos = to_name(qos, "qos", {Qos::best_effort, Qos::burstable, Qos::guaranteed}),
              .priority = to_int(priority, "priority"),
              .run_estimate = to_time(run_estimate, "run_estimate"),
              .memory_bytes = to_bytes(memory, "memory"),
              .stream = to_int(stream, "stream"),
              .traffic_bytes = to_bytes(traffic, "traffic"),
              .dependencies = after};
    const std::string text = describe(task);
    const Callback run(std::move(work)), tell(std::move(ended));
    const Decision decision = open()->scheduler.submit(
        std::move(task),
        [run, device = device_, self = this](StreamRef ref) {
          std::optional<CurrentStream> current;
          if (device.is_cuda()) current.emplace(ref);
          const auto outer = std::exchange(task_of, self);
          try {
            run();
          } catch (...) {
            task_of = outer;
            throw;
          }
          task_of = outer;
        },
        [tell, self = this](const TaskStatus& status) {
          const auto outer = std::exchange(task_of, self);  // callbacks cannot close it either
          try {
            tell(std::string(to_string(status.state)), status.error);
          } catch (const std::exception& error) {
            log_error(join("Scheduler: the end of task ", status.task.id, ": ", error.what()));
          }
          task_of = outer;
        });
    if (decision.verdict == Verdict::reject) refuse(text, decision.reason);
    return {std::string(to_string(decision.verdict)), std::string(to_string(decision.reason))};
  }
  void cancel(TaskId id) { open()->scheduler.cancel(id); }
  void forget(TaskId id) {
    const std::shared_ptr<Running> running = running_;
    if (running && !is_of_parent()) running->scheduler.forget(id);
  }
  std::string state(TaskId id) {
    return std::string(to_string(open()->scheduler.status(id).state));
  }

  nb::dict statistics() {
    const scheduler::Statistics s = open()->scheduler.statistics();
    nb::dict d;
    d["pending"] = s.pending;
    d["running"] = s.running;
    d["completed"] = s.completed;
    d["failed"] = s.failed;
    d["cancelled"] = s.cancelled;
    d["rejected"] = s.rejected;
    d["reserved_bytes"] = s.reserved_bytes;
    d["available_bytes"] = s.available_bytes;
    d["average_wait"] = seconds(s.average_wait);
    d["average_run"] = seconds(s.average_run);
    return d;
  }
  nb::list decisions() {
    nb::list all;
    for (const Decision& d : open()->scheduler.log())
      all.append(nb::make_tuple(seconds(d.at), d.id, std::string(to_string(d.verdict)),
                                std::string(to_string(d.reason))));
    return all;
  }
  std::string device() const { return to_string(device_); }

  // Cancels what is pending, waits for the rest; whether that ended in time.
  bool close(nb::handle timeout) {
    std::optional<Time> at_most;
    if (!timeout.is_none()) at_most = to_time(to_double(timeout, "Scheduler: timeout"), "timeout");
    if (task_of == this)
      fail(ErrorKind::value,
           "Scheduler: close was called by one of its own tasks or their callbacks, for which it "
           "waits; "
           "call it from outside");
    if (const std::shared_ptr<Running> running = running_; running && !is_of_parent()) {
      const WithoutGil released;
      if (!running->scheduler.close(at_most)) return false;
    }
    if (std::shared_ptr<Running> last = std::move(running_); last.use_count() == 1) {
      last->ends_here = true;  // its threads are gone once this returns
      const WithoutGil released;
      last.reset();
    }
    return true;
  }

 private:
  std::shared_ptr<Running> open() {
    if (!running_) fail(ErrorKind::value, "Scheduler: it is closed; make another one");
    if (is_of_parent()) fail_in_forked_child("Scheduler");
    return running_;
  }
  bool is_of_parent() const { return getpid() != process_; }
  [[noreturn]] void refuse(const std::string& task, Reason reason) {
    const bool is_room = reason == Reason::memory || reason == Reason::queue_full;
    fail(is_room ? ErrorKind::out_of_memory : ErrorKind::value, "Scheduler: ", task,
         " is rejected: ",
         reason == Reason::memory
             ? "it asks for more memory than the scheduler has in all; ask for less, or give "
               "Scheduler(memory=) more"
         : reason == Reason::queue_full ? "max_pending tasks of its class wait already; wait for "
                                          "one, or raise max_pending"
         : reason == Reason::bandwidth  ? "its traffic is more than its stream's share of one "
                                          "window; split it, or raise bandwidth, shares or window"
                                        : "a task that it comes after failed or was cancelled");
  }

  const Device device_;
  const pid_t process_ = getpid();
  std::shared_ptr<Running> running_;  // read and written with the GIL held
};

}  // namespace

void register_scheduler(nb::module_& m) {
  nb::class_<SchedulerObject> schedulers(m, "Scheduler", "What tc.Scheduler runs tasks by.");
  schedulers
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, double, const nb::dict&, double,
                    double, nb::handle>(),
           "device"_a.none(), "memory"_a.none(), "max_running"_a.none(), "max_pending"_a.none(),
           "bandwidth"_a, "shares"_a, "window"_a, "patience"_a, "streams"_a.none())
      .def("submit", &SchedulerObject::submit, "id"_a, "name"_a, "policy"_a, "qos"_a,
           "priority"_a.none(), "run_estimate"_a, "memory"_a.none(), "stream"_a.none(),
           "traffic"_a.none(), "after"_a, "work"_a, "ended"_a)
      .def("cancel", &SchedulerObject::cancel)
      .def("forget", &SchedulerObject::forget)
      .def("state", &SchedulerObject::state)
      .def("statistics", &SchedulerObject::statistics)
      .def("decisions", &SchedulerObject::decisions)
      .def("close", &SchedulerObject::close, "timeout"_a.none())
      .def_prop_ro("device", &SchedulerObject::device);
  refuse_others(schedulers, "__init__",
                "Scheduler: bandwidth, window and patience are numbers, shares is a dict");
  refuse_others(schedulers, "submit",
                "name, policy and qos are text, run_estimate is a number of seconds");
}

}  // namespace tensorcraft::python

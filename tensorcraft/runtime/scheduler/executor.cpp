// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/scheduler/executor.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/log.hpp"
#include "tensorcraft/core/start_thread.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace tensorcraft::scheduler {
namespace {

// Returns the text of what the call threw.
template <class Call>
std::optional<std::string> error_of(Call&& call) {
  try {
    call();
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of unknown type";
  }
  return std::nullopt;
}

}  // namespace

struct CpuExecutor::State {
  std::mutex mutex;
  std::condition_variable work_or_end, reported;
  std::deque<std::pair<TaskId, Work>> queue;
  std::vector<Report> reports;
  bool ending = false, woken = false;
  std::vector<std::jthread> threads;  // last: joined before the rest goes

  // Sends the threads home, those too that began before another one was refused.
  ~State() {
    std::deque<std::pair<TaskId, Work>> dropped;  // goes after the lock
    {
      const std::lock_guard lock(mutex);
      ending = true;
      dropped.swap(queue);
    }
    work_or_end.notify_all();
  }
  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      work_or_end.wait(lock, [&] { return ending || !queue.empty(); });
      if (ending) return;
      auto [id, work] = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      Report report{id, error_of([&] { work(StreamRef()); })};
      work = nullptr;  // what it captured may be slow to go, or take the lock
      lock.lock();
      reports.push_back(std::move(report));
      reported.notify_all();
    }
  }
};

CpuExecutor::CpuExecutor(int threads) : state_(std::make_unique<State>()) {
  if (threads < 1) fail(ErrorKind::value, "CpuExecutor: threads must be at least 1, got ", threads);
  for (int i = 0; i < threads; ++i)
    state_->threads.push_back(
        start_thread("Scheduler", "close schedulers that are done, or ask for fewer streams",
                     [s = state_.get()] { s->run(); }));
}

CpuExecutor::~CpuExecutor() = default;

void CpuExecutor::start(TaskId id, int, Work work) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->queue.emplace_back(id, std::move(work));
  }
  state_->work_or_end.notify_one();
}

void CpuExecutor::stop(TaskId id) {
  Work dropped;  // goes after the lock
  const std::lock_guard lock(state_->mutex);
  const auto found = std::ranges::find(state_->queue, id, &std::pair<TaskId, Work>::first);
  if (found == state_->queue.end()) return;
  dropped = std::move(found->second);
  state_->queue.erase(found);
  state_->reports.push_back({id, "stopped before it began"});
  state_->reported.notify_all();
}

std::vector<Report> CpuExecutor::take_reports() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->reports, {});
}

void CpuExecutor::wait(Time at_most) {
  std::unique_lock lock(state_->mutex);
  state_->reported.wait_for(lock, at_most,
                            [&] { return !state_->reports.empty() || state_->woken; });
  state_->woken = false;
}

void CpuExecutor::wake() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->woken = true;
  }
  state_->reported.notify_all();
}

struct CudaExecutor::State {
  struct InFlight {
    TaskId id;
    std::optional<std::string> error;        // of the work; reported when the event is done
    std::optional<tensorcraft::Event> done;  // none if recording it failed
    Work work;
  };
  std::mutex mutex;
  int device = 0;
  std::vector<Stream> own;
  std::vector<StreamRef> streams;
  std::deque<InFlight> in_flight;
  std::atomic<bool> woken = false;

  // Has the GPU let go of the task? A failing query is the task's failure.
  static bool ended(InFlight& task) {
    bool done = true;
    const auto error = error_of([&] { done = !task.done || task.done->done(); });
    if (error && !task.error) task.error = error;
    return done;
  }
};

CudaExecutor::CudaExecutor(int device, int streams) : state_(std::make_unique<State>()) {
  if (streams < 1)
    fail(ErrorKind::value, "CudaExecutor: streams must be at least 1, got ", streams);
  state_->device = device;
  for (int i = 0; i < streams; ++i)
    state_->streams.push_back(state_->own.emplace_back(device).ref());
}

CudaExecutor::CudaExecutor(std::vector<StreamRef> streams) : state_(std::make_unique<State>()) {
  if (streams.empty()) fail(ErrorKind::value, "CudaExecutor: streams must be at least 1, got 0");
  state_->device = streams.front().device();
  for (const StreamRef stream : streams)
    if (stream.device() != state_->device)
      fail(ErrorKind::value,
           "CudaExecutor: streams must belong to one device, got cuda:", state_->device,
           " and cuda:", stream.device());
  state_->streams = std::move(streams);
}

CudaExecutor::~CudaExecutor() {
  for (State::InFlight& task : state_->in_flight)
    if (const auto error = error_of([&] {
          if (task.done) task.done->synchronize();
        }))
      log_error(join("CudaExecutor: task ", task.id, " at the end: ", *error));
}

void CudaExecutor::start(TaskId id, int stream, Work work) {
  const auto count = int64_t(state_->streams.size());
  const StreamRef ref = state_->streams[size_t((stream % count + count) % count)];
  State::InFlight task{.id = id, .work = std::move(work)};
  // The event comes first: without it nothing is enqueued. Work that throws may have enqueued some.
  task.error = error_of([&] { task.done.emplace(state_->device); });
  if (!task.error) {
    task.error = error_of([&] { task.work(ref); });
    if (const auto error = error_of([&] { task.done->record(ref); })) {
      task.error = task.error.value_or(*error);
      task.done.reset();
    }
  }
  const std::lock_guard lock(state_->mutex);
  state_->in_flight.push_back(std::move(task));
}

std::vector<Report> CudaExecutor::take_reports() {
  std::vector<State::InFlight> ended;  // what their work captured goes after the lock
  std::vector<Report> reports;
  {
    const std::lock_guard lock(state_->mutex);
    auto& tasks = state_->in_flight;
    for (auto task = tasks.begin(); task != tasks.end();) {
      if (State::ended(*task)) {
        reports.push_back({task->id, task->error});
        ended.push_back(std::move(*task));
        task = tasks.erase(task);
      } else {
        ++task;
      }
    }
  }
  return reports;
}

void CudaExecutor::wait(Time at_most) {
  constexpr auto kPause = std::chrono::microseconds(50);  // events have no wait with a limit
  const auto until = std::chrono::steady_clock::now() + at_most;
  const auto any_ended = [&] {
    const std::lock_guard lock(state_->mutex);
    return std::ranges::any_of(state_->in_flight, State::ended);
  };
  while (!any_ended() && !state_->woken.exchange(false) && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(kPause);
}

void CudaExecutor::wake() { state_->woken = true; }

}  // namespace tensorcraft::scheduler

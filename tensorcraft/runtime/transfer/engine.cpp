// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/transfer/engine.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/interrupt.hpp"
#include "tensorcraft/core/log.hpp"
#include "tensorcraft/core/start_thread.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/runtime/trace/trace_log.hpp"

#include <sys/prctl.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tensorcraft {

using transfer::Core;
using transfer::Record;
using transfer::State;
using transfer::Time;

namespace {

thread_local const void* driven = nullptr;  // the engine whose thread this is

Time steady_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

// Returns the items that `tensorcraft top` shows, one for each lane that has moved something.
std::vector<status::Item> items_of(Device device, const transfer::Statistics& now) {
  std::vector<status::Item> items;
  for (size_t i = 0; i < now.size(); ++i) {
    const transfer::LaneStatistics& lane = now[i];
    if (lane.queued + lane.running + lane.completed + lane.failed + lane.cancelled == 0) continue;
    items.push_back({"transfers",
                     join(device, " ", to_string(transfer::Direction(i))),
                     {{"running", double(lane.running)},
                      {"queued", double(lane.queued)},
                      {"completed", double(lane.completed)},
                      {"failed", double(lane.failed)},
                      {"cancelled", double(lane.cancelled)},
                      {"moved_bytes", double(lane.bytes)},
                      {"gb_per_s", lane.gb_per_s()}}});
  }
  return items;
}

// A transfer that has ended, for a trace of the process: each lane has a track.
void trace(TraceLog& log, const std::string& device, const Record& record) {
  const std::string track = join("transfers ", device, " ", to_string(record.request.direction));
  const std::string name = join(record.request.bytes, " bytes");
  const TraceLog::Details details{{"state", std::string(to_string(record.state))},
                                  {"priority", join(record.request.priority)},
                                  {"staged", record.is_staged ? "yes" : "no"}};
  if (record.started == Time(0))
    log.instant(track, name, record.ended, details);
  else
    log.span(track, name, record.started, record.ended, details);
}

}  // namespace

// Engine and transfers share this. Its core goes with the engine.
struct Transfer::Engine {
  using Lock = std::unique_lock<std::mutex>;

  const TransferEngine::Clock clock;
  const TransferEngine::Drive drive;
  std::string device = "a device";  // as a trace names it
  mutable ForkSafeMutex mutex;      // guards all below; not held while a callback or a deleter runs
  std::condition_variable_any poked, moved;
  bool is_poked = false;
  uint64_t seen = 0;               // Core::milestones() that were notified
  std::vector<Core::Ended> ended;  // to be told
  std::unordered_map<const Record*, std::vector<std::function<void()>>> on_end;
  std::unique_ptr<Core> core;
  bool is_of_parent = false;
  // The threads of the parent stayed behind, and what they hold is theirs.
  const InForkedChild in_child{[this] {
    is_of_parent = true;
    std::construct_at(&poked);
    std::construct_at(&moved);
  }};

  Engine(TransferEngine::Clock clock_, TransferEngine::Drive drive_)
      : clock(std::move(clock_)), drive(drive_) {}

  void refuse_in_child() const {
    if (is_of_parent) fail_in_forked_child("TransferEngine");
  }
  void pump() {
    const uint64_t before = seen;
    for (Core::Ended& one : core->pump(clock())) ended.push_back(std::move(one));
    seen = core->milestones();
    if (seen != before) moved.notify_all();
  }
  // Tells who asked, without the lock.
  void tell(Lock& lock) {
    while (!ended.empty()) {
      std::vector<Core::Ended> told;
      told.swap(ended);
      if (TraceLog* const log = TraceLog::of_process())
        for (const Core::Ended& one : told) trace(*log, device, *one.record);
      std::vector<std::function<void()>> calls;
      for (const Core::Ended& one : told)
        if (auto asked = on_end.extract(one.record.get()))
          for (auto& call : asked.mapped()) calls.push_back(std::move(call));
      lock.unlock();
      for (const auto& call : calls) run(call);
      calls.clear();
      told.clear();
      lock.lock();
    }
  }
  static void run(const std::function<void()>& call) {
    try {
      call();
    } catch (const std::exception& error) {
      log_error(join("TransferEngine: a callback threw: ", error.what()));
    }
  }
  void poke() {
    is_poked = true;
    poked.notify_all();
  }
  // After a call: on a thread of the engine's the rest is its work.
  void go_on(Lock& lock) {
    pump();
    if (drive == TransferEngine::Drive::thread)
      poke();
    else
      tell(lock);
  }
  // Returns when `is_there` says so.
  template <class Condition>
  void wait(Lock& lock, const char* call, Condition is_there) {
    constexpr std::chrono::milliseconds kSlice{20};
    constexpr std::chrono::microseconds kPause{20};
    if (is_there()) return;
    refuse_in_child();
    if (driven == this)
      fail(ErrorKind::value, "TransferEngine: ", call,
           ": the engine's own thread would wait for itself; do it elsewhere");
    const bool has_thread = drive == TransferEngine::Drive::thread;
    const auto is_over = [&] {
      if (!has_thread) {
        pump();
        tell(lock);
      }
      return is_there();
    };
    wait_or_interrupt(moved, lock, is_over, {}, has_thread ? Time(kSlice) : Time(kPause));
  }
  void require_success(const Record& record) const {
    if (record.state == State::failed) std::rethrow_exception(record.error);
    if (record.state == State::cancelled)
      fail(ErrorKind::cancelled, "the transfer was cancelled; its destination is undefined");
  }
};

State Transfer::state() const {
  if (!record_) return State::completed;
  const Engine::Lock lock(engine_->mutex);
  return record_->state;
}

void Transfer::wait() const {
  if (!record_) return;
  Engine::Lock lock(engine_->mutex);
  engine_->wait(lock, "wait", [this] { return is_terminal(record_->state); });
  engine_->require_success(*record_);
}

void Transfer::order_before(StreamRef stream) const {
  if (!record_) return;
  std::shared_ptr<memory::Mark> copied;
  {
    Engine::Lock lock(engine_->mutex);
    engine_->wait(lock, "order_before", [this] { return record_->is_enqueued(); });
    engine_->require_success(*record_);
    copied = record_->copied;
  }
  if (copied) copied->order_before(stream);
}

bool Transfer::cancel() const {
  if (!record_) return false;
  Engine::Lock lock(engine_->mutex);
  if (is_terminal(record_->state)) return false;
  engine_->refuse_in_child();
  engine_->core->cancel(record_, engine_->clock());
  engine_->go_on(lock);
  return true;
}

void Transfer::on_end(std::function<void()> call) const {
  if (record_) {
    const std::shared_ptr<Engine> engine = engine_;  // this object may be gone once it was called
    const Engine::Lock lock(engine->mutex);
    if (!is_terminal(record_->state)) {
      engine->refuse_in_child();
      engine->on_end[record_.get()].push_back(std::move(call));
      return;
    }
  }
  Engine::run(call);
}

uint64_t Transfer::bytes_copied() const {
  if (!record_) return 0;
  const Engine::Lock lock(engine_->mutex);
  return record_->moved;
}

double Transfer::gb_per_s() const {
  if (!record_) return 0;
  const Engine::Lock lock(engine_->mutex);
  const Record& record = *record_;
  if (record.started == Time(0)) return 0;
  const Time until = is_terminal(record.state) ? record.ended : engine_->clock();
  const auto time = double((until - record.started).count());
  return time > 0 ? double(record.moved) / time : 0;
}

TransferEngine::TransferEngine(Device device, const transfer::Options& options)
    : TransferEngine(device.is_cuda() ? transfer::cuda_copy_device(device.index)
                                      : transfer::host_copy_device(),
                     std::make_unique<transfer::ThreadStager>(), options, steady_now) {
  {
    const Transfer::Engine::Lock lock(engine_->mutex);
    engine_->device = to_string(device);
  }
  source_.emplace([this, device] { return items_of(device, statistics()); });
}

TransferEngine::TransferEngine(std::unique_ptr<transfer::CopyDevice> device,
                               std::unique_ptr<transfer::Stager> stager,
                               const transfer::Options& options, Clock clock, Drive drive)
    : engine_(std::make_shared<Transfer::Engine>(std::move(clock), drive)) {
  stager->on_done([engine = engine_.get()] {
    const std::lock_guard lock(engine->mutex);
    engine->poke();
  });
  engine_->core = std::make_unique<Core>(std::move(device), std::move(stager), options);
  if (drive == Drive::thread)
    driver_ = start_thread("TransferEngine", "close engines and schedulers that are done",
                           [this](const std::stop_token& stop) { this->drive(stop); });
}

TransferEngine::~TransferEngine() {
  source_.reset();  // it asks the core
  Transfer::Engine& engine = *engine_;
  Transfer::Engine::Lock lock(engine.mutex);
  if (engine.is_of_parent) {  // leaked: nothing ends what stayed behind
    std::construct_at(&driver_);
    std::construct_at(&engine.core);
    return;
  }
  engine.core->cancel_queued(engine.clock());
  engine.poke();
  if (driver_.joinable()) {
    engine.moved.wait(lock, [&] { return engine.core->is_idle(); });
    driver_.request_stop();
    engine.poke();
    lock.unlock();
    driver_.join();
    lock.lock();
  }
  do {
    engine.core->drain();
    engine.pump();
    engine.tell(lock);
  } while (!engine.core->is_idle());
  lock.unlock();
  engine.core.reset();  // its threads take the lock
}

Transfer TransferEngine::submit(transfer::Request request) {
  Transfer::Engine::Lock lock(engine_->mutex);
  engine_->refuse_in_child();
  Transfer made(engine_, engine_->core->submit(std::move(request), engine_->clock()));
  engine_->go_on(lock);
  return made;
}

void TransferEngine::advance() {
  Transfer::Engine::Lock lock(engine_->mutex);
  engine_->refuse_in_child();
  engine_->go_on(lock);
}

transfer::Statistics TransferEngine::statistics() const {
  const Transfer::Engine::Lock lock(engine_->mutex);
  return engine_->core->statistics(engine_->clock());
}

void TransferEngine::drive(const std::stop_token& stop) {
  constexpr std::chrono::microseconds kPause{10};  // events have no wait with a limit
  Transfer::Engine& engine = *engine_;
  driven = &engine;
  prctl(PR_SET_TIMERSLACK, 1000);  // else a pause is five times as long
  Transfer::Engine::Lock lock(engine.mutex);
  while (!stop.stop_requested()) {
    engine.is_poked = false;
    engine.pump();
    engine.tell(lock);
    const auto poked = [&] { return engine.is_poked; };
    if (engine.core->has_copies())
      engine.poked.wait_for(lock, kPause, poked);
    else if (const auto wake = engine.core->wake())
      engine.poked.wait_for(lock, *wake - engine.clock(), poked);
    else
      engine.poked.wait(lock, poked);
  }
}

namespace {

// Each engine belongs to one driver: a test may put another in its place.
struct OfDevice {
  uint64_t driver;
  int device;
  std::unique_ptr<TransferEngine> engine;
};
struct Instances {
  std::mutex mutex;
  std::vector<OfDevice> all;
  bool ends_at_exit = false;
};
Instances& instances() {
  static constinit FirstMade<Instances> one;
  return *one;
}

}  // namespace

void TransferEngine::synchronize() {
  Transfer::Engine::Lock lock(engine_->mutex);
  engine_->wait(lock, "synchronize", [this] { return engine_->core->is_idle(); });
}

void TransferEngine::synchronize(Device device) {
  TransferEngine* made = nullptr;
  {
    const std::lock_guard lock(instances().mutex);
    for (const OfDevice& one : instances().all)
      if (device == Device::cuda(one.device) && one.driver == cuda::driver_number())
        made = one.engine.get();
  }
  if (made) made->synchronize();
}

TransferEngine& TransferEngine::instance(Device device) {
  if (!device.is_cuda())
    fail(ErrorKind::value, "TransferEngine::instance: ", device,
         " has no engine of the library's; make one, or give a CUDA device");
  cuda::require_usable();
  Instances& known = instances();
  const std::lock_guard lock(known.mutex);
  for (const OfDevice& one : known.all)
    if (one.device == device.index && one.driver == cuda::driver_number()) {
      if (!one.engine) fail(ErrorKind::device_lost, "TransferEngine: the process is ending");
      return *one.engine;
    }
  // Before the driver's own exit handlers, which were there first.
  if (!std::exchange(known.ends_at_exit, true))
    std::atexit([] {
      for (OfDevice& one : instances().all) one.engine.reset();
    });
  auto made = std::make_unique<TransferEngine>(device);
  return *known.all.emplace_back(cuda::driver_number(), device.index, std::move(made)).engine;
}

}  // namespace tensorcraft

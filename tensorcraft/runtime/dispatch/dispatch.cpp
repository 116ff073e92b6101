// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/dispatch/dispatch.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/launch_watcher.hpp"
#include "tensorcraft/cuda/stream_state.hpp"
#include "tensorcraft/runtime/memory/cuda_memory_device.hpp"
#include "tensorcraft/runtime/trace/nvtx.hpp"

#include <memory>
#include <mutex>

namespace tensorcraft::dispatch {
namespace {

struct CurrentTask {
  TaskId id = 0;
  const std::atomic<bool>* cancelled = nullptr;
};
thread_local constinit CurrentTask current;
thread_local constinit bool is_admitted = false;  // the launch that this thread is making

bool is_cancelled() { return current.cancelled && current.cancelled->load(); }

[[noreturn]] void refuse(std::string_view what) {
  fail(ErrorKind::cancelled, what, ": not launched, as task ", current.id, " was cancelled");
}

Time now() { return std::chrono::steady_clock::now().time_since_epoch(); }

std::unique_ptr<memory::Mark> make_mark(StreamRef stream) {
  return memory::cuda_memory_device(stream.device())->make_mark();
}

class Dispatcher final : public cuda::LaunchWatcher {
 public:
  void before(const cuda::LaunchNote& note) override {
    const Device device = Device::cuda(note.stream.device());
    refuse_cancelled(note, device);
    if (note.is_recorded) return;
    is_admitted = controller.admit(note.stream);
    if (!is_cancelled()) return;  // it may have waited long
    controller.withdraw(note.stream, is_admitted);
    refuse_cancelled(note, device);
  }
  void after(const cuda::LaunchNote& note, bool launched) noexcept override {
    record(note, Device::cuda(note.stream.device()),
           launched ? Outcome::launched : Outcome::failed);
    if (note.is_recorded) return;
    if (launched)
      controller.launched(note.stream, is_admitted);
    else
      controller.failed(note.stream, is_admitted);
  }
  void refuse_cancelled(const cuda::LaunchNote& note, Device device) {
    if (!is_cancelled()) return;
    controller.note_cancelled();
    record(note, device, Outcome::cancelled);
    refuse(note.what);
  }
  void record(const cuda::LaunchNote& note, Device device, Outcome outcome) noexcept {
    recorder.note({.name = Launch::short_name(note.what),
                   .kernel = note.kernel,
                   .grid = note.grid,
                   .block = note.block,
                   .stream = note.stream.handle(),
                   .device = device,
                   .outcome = outcome,
                   .task = current.id,
                   .at = now()});
  }
  // Watches as long as somebody needs it.
  void add_user() {
    const std::lock_guard lock(mutex);
    if (users++ == 0) cuda::watch_launches(this);
  }
  void remove_user() noexcept {
    const std::lock_guard lock(mutex);
    if (--users == 0) cuda::watch_launches(nullptr);
  }

  Recorder recorder;
  Controller controller{make_mark};
  ForkSafeMutex mutex;  // guards both below
  int users = 0;        // tasks, limits, and what records
  bool records = false, limits = false;
};

Dispatcher& dispatcher();

// To make a second one changes nothing: the functions ask for the one that stays.
Dispatcher* make_dispatcher() {
  auto made = std::make_unique<Dispatcher>();
  cuda::on_device_lost([] { return report(dispatcher().recorder.last(), now()); });
  cuda::on_stream_end(
      [](StreamRef stream) noexcept { dispatcher().controller.stream_ends(stream); },
      cuda::Listener::dispatch);
  return made.release();
}

Dispatcher& dispatcher() {
  static constinit FirstMade<Dispatcher, make_dispatcher> one;
  return *one;
}

// `wanted` of one of the reasons that count once.
void use(bool Dispatcher::* reason, bool wanted) {
  Dispatcher& d = dispatcher();
  {
    const std::lock_guard lock(d.mutex);
    if (std::exchange(d.*reason, wanted) == wanted) return;
  }
  wanted ? d.add_user() : d.remove_user();
}

}  // namespace

void set_limit(StreamRef stream, int limit) {
  device_info(Device::cuda(stream.device()));  // a device that does not exist is refused here
  Dispatcher& d = dispatcher();
  d.controller.set_limit(stream, limit);
  use(&Dispatcher::limits, d.controller.has_limits());
}

int limit(StreamRef stream) { return dispatcher().controller.limit(stream); }

void record_launches(bool enabled) { use(&Dispatcher::records, enabled); }

Counts counts() { return dispatcher().controller.counts(cuda::tells_its_end); }

std::vector<Launch> recent(size_t count) { return dispatcher().recorder.last(count); }

TaskScope::TaskScope(TaskId id, const std::atomic<bool>* cancelled)
    : outer_(current.id), outer_cancelled_(current.cancelled) {
  if (nvtx::is_listening()) nvtx::push(join("task ", id));
  dispatcher().add_user();
  current = {id, cancelled};
}

TaskScope::~TaskScope() {
  if (nvtx::is_listening()) nvtx::pop();
  current = {outer_, outer_cancelled_};
  dispatcher().remove_user();
}

TaskId current_task() { return current.id; }

void refuse_cancelled(std::string_view what) {
  if (is_cancelled()) refuse(what);
}

bool is_watching() noexcept { return cuda::launch_watcher() != nullptr; }

void before_simt_launch(std::string_view what, Dim3 grid, Dim3 block) {
  dispatcher().refuse_cancelled({.what = what, .grid = grid, .block = block}, Device::simt());
}

void after_simt_launch(std::string_view what, Dim3 grid, Dim3 block) noexcept {
  dispatcher().controller.note_completed();
  dispatcher().record({.what = what, .grid = grid, .block = block}, Device::simt(),
                      Outcome::launched);
}

}  // namespace tensorcraft::dispatch

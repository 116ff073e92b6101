// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/stream_state.hpp"

#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/cuda/session.hpp"

#include <atomic>
#include <mutex>
#include <unordered_map>

namespace tensorcraft::cuda {
namespace {

const auto kPerThread = reinterpret_cast<CUstream_st*>(2);         // as the driver names it
std::atomic<void (*)(StreamRef) noexcept> notices_of_end[2] = {};  // by Listener
std::atomic<void (*)(int) noexcept> notice_of_recording{nullptr};
std::atomic<int> recordings{0};  // of Graphs, at this moment

struct Own {
  std::mutex mutex;
  std::unordered_map<CUstream_st*, uint64_t> streams;  // and the number of each
  uint64_t last = 0;
  std::atomic<uint64_t> changes{1};  // of `streams`, so that threads remember what they asked
};
Own& own() {
  static constinit FirstMade<Own> one;
  return *one;
}

uint64_t thread_number() {
  static std::atomic<uint64_t> last{0};
  thread_local const uint64_t number = ++last;
  return number;
}

}  // namespace

uint64_t stream_number(StreamRef stream, bool is_recorded) {
  enum Kind : uint64_t { kOwn = 1, kOfThread, kForeign, kForeignHandle };
  const auto of = [](uint64_t number, Kind kind) { return number << 3 | kind; };
  if (!stream.handle()) return 0;
  if (stream.handle() == kPerThread) return of(thread_number(), kOfThread);
  {
    const std::lock_guard lock(own().mutex);
    const auto known = own().streams.find(stream.handle());
    if (known != own().streams.end()) return of(known->second, kOwn);
  }
  if (is_recorded) return of(reinterpret_cast<uintptr_t>(stream.handle()), kForeignHandle);
  const DeviceGuard guard(stream.device());
  uint64_t number = 0;
  require_driver().stream_get_id(stream.handle(), &number);
  return of(number, kForeign);
}

uint64_t recording_number(StreamRef stream) {
  if (!stream.handle()) return 0;
  const DeviceGuard guard(stream.device());
  int state = 0;
  uint64_t number = 0;
  CUgraph_st* graph = nullptr;
  require_driver().stream_get_capture_info(stream.handle(), &state, &number, &graph, nullptr,
                                           nullptr);
  return state == 0 ? 0 : number + 1;
}

// A launch asks, so a thread remembers the last answer, which takes no lock.
bool tells_its_end(StreamRef stream) {
  struct Answer {
    CUstream_st* of = nullptr;
    uint64_t changes = 0;
    bool is_own = false;
  };
  thread_local constinit Answer last;
  if (!stream.handle()) return true;
  Own& all = own();
  if (last.of == stream.handle() && last.changes == all.changes.load(std::memory_order_acquire))
    return last.is_own;
  const std::lock_guard lock(all.mutex);
  last = {stream.handle(), all.changes.load(std::memory_order_relaxed),
          all.streams.contains(stream.handle())};
  return last.is_own;
}

void on_stream_end(void (*notice)(StreamRef) noexcept, Listener listener) {
  notices_of_end[size_t(listener)] = notice;
}

void on_recording(void (*notice)(int) noexcept) { notice_of_recording = notice; }

bool launch_is_recorded(const Driver& driver, StreamRef stream) {
  if (recordings.load(std::memory_order_relaxed) == 0 && tells_its_end(stream)) return false;
  return is_recorded(driver, stream);
}

void recording_begins(int device) noexcept {
  ++recordings;
  if (const auto notice = notice_of_recording.load()) notice(device);
}

void recording_ends() noexcept { --recordings; }

void stream_begins(StreamRef stream) {
  const std::lock_guard lock(own().mutex);
  own().streams.emplace(stream.handle(), ++own().last);
  own().changes.fetch_add(1, std::memory_order_release);
}

void stream_ends(StreamRef stream) noexcept {
  if (!usable()) return;  // in a forked child another thread may have held the lock
  for (const auto& one : notices_of_end)
    if (const auto notice = one.load()) notice(stream);
  const std::lock_guard lock(own().mutex);
  own().streams.erase(stream.handle());
  own().changes.fetch_add(1, std::memory_order_release);
}

}  // namespace tensorcraft::cuda

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/trace/trace_log.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/log.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

namespace tensorcraft {
namespace {

using nlohmann::ordered_json;

constexpr size_t kWriteBytes = size_t(64) << 10;  // collected before a write
constexpr size_t kMostGpuSpans = 4096;            // that wait for the GPU

double microseconds(TraceLog::Time time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// The process's own log, which is leaked: threads may add to it until the process ends.
TraceLog* open_of_process() {
  const std::string& path = config().trace;
  if (path.empty()) return nullptr;
  try {
    return new TraceLog(path);
  } catch (const Error& error) {
    log_error(error.what());
    return nullptr;
  }
}

}  // namespace

TraceLog* TraceLog::of_process() {
  static std::atomic<bool> is_opened = false;
  static std::atomic<TraceLog*> log = nullptr;
  if (is_opened.load(std::memory_order_acquire)) return log;
  // A second one would write its head into the file.
  static constinit FirstMade<ForkSafeMutex> opening;
  const std::lock_guard lock(*opening);
  if (is_opened) return log;
  log = open_of_process();
  if (log) std::atexit([] { of_process()->flush(true); });
  is_opened = true;
  return log;
}

TraceLog::TraceLog(std::string path) : path_(std::move(path)), process_(getpid()) {
  const auto open_with = [&](int flags) {
    return ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | flags, 0666);
  };
  file_ = open_with(O_CREAT | O_EXCL);
  // Viewers take a list without its end, to which further processes append.
  if (file_ >= 0)
    text_ = "[\n";
  else if (errno == EEXIST)
    file_ = open_with(0);
  if (file_ < 0)
    fail(ErrorKind::io, "trace: ", path_, " cannot be written: ", std::strerror(errno));
  text_ += ordered_json{{"name", "process_name"},
                        {"ph", "M"},
                        {"pid", getpid()},
                        {"args", {{"name", join("process ", getpid())}}}}
               .dump() +
           ",\n";
  write();
}

TraceLog::~TraceLog() {
  flush(true);
  if (file_ >= 0) ::close(file_);
}

void TraceLog::span(std::string_view track, std::string_view name, Time begin, Time end,
                    const Details& details) {
  const std::lock_guard lock(mutex_);
  add(track, name, 'X', begin, end - begin, details);
  resolve(false);
}

void TraceLog::instant(std::string_view track, std::string_view name, Time at,
                       const Details& details) {
  const std::lock_guard lock(mutex_);
  add(track, name, 'i', at, Time(0), details);
}

void TraceLog::watch(int device) {
  const std::lock_guard lock(mutex_);
  if (epochs_.contains(device)) return;
  const Stream stream(device);
  Event event(device, true);
  event.record(stream);
  event.synchronize();
  epochs_.emplace(device, Epoch{std::move(event), now()});
}

void TraceLog::gpu_span(std::string_view name, StreamRef stream, Event begin, Event end,
                        const Details& details) {
  const std::lock_guard lock(mutex_);
  gpu_spans_.push_back({std::string(name), stream, std::move(begin), std::move(end), details});
  resolve(false);
  if (gpu_spans_.size() > kMostGpuSpans) resolve(true);
}

void TraceLog::flush(bool wait) {
  const std::lock_guard lock(mutex_);
  forget_parent();
  resolve(wait);
  write();
}

// Writes the spans that the GPU has passed, or with `wait` all.
void TraceLog::resolve(bool wait) try {
  while (!gpu_spans_.empty()) {
    GpuSpan& first = gpu_spans_.front();
    if (!wait && !first.end.done()) return;
    const GpuSpan span = std::move(first);
    gpu_spans_.pop_front();  // before what may throw
    const Epoch& epoch = epochs_.at(span.stream.device());
    const auto at = [&](const Event& event) {
      const std::chrono::duration<double, std::milli> since(Event::elapsed_ms(epoch.event, event));
      return epoch.host + std::chrono::duration_cast<Time>(since);
    };
    const Time begin = at(span.begin);
    add(track_of(span.stream), span.name, 'X', begin, at(span.end) - begin, span.details);
  }
} catch (const std::exception& error) {  // the device is lost, or the driver gone
  log_debug(join("trace: ", error.what()));
}

std::string TraceLog::track_of(StreamRef stream) {
  const auto [found, is_new] =
      streams_.emplace(std::pair(stream.device(), stream.handle()), int(streams_.size()));
  return join(Device::cuda(stream.device()), " stream ", found->second);
}

int TraceLog::track_number(std::string_view track) {
  if (const auto found = tracks_.find(track); found != tracks_.end()) return found->second;
  const int number = int(tracks_.size()) + 1;
  tracks_.emplace(track, number);
  text_ += ordered_json{{"name", "thread_name"},
                        {"ph", "M"},
                        {"pid", getpid()},
                        {"tid", number},
                        {"args", {{"name", track}}}}
               .dump() +
           ",\n";
  return number;
}

void TraceLog::add(std::string_view track, std::string_view name, char phase, Time begin,
                   Time length, const Details& details) {
  forget_parent();
  ordered_json event{{"name", name},
                     {"ph", std::string(1, phase)},
                     {"pid", getpid()},
                     {"tid", track_number(track)},
                     {"ts", microseconds(begin)}};
  if (phase == 'X') event["dur"] = microseconds(length);
  if (phase == 'i') event["s"] = "t";
  for (const auto& [key, value] : details) event["args"][std::string(key)] = value;
  text_ += event.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + ",\n";
  if (text_.size() >= kWriteBytes) write();
}

// In a forked child: what the parent has not written is the parent's to write.
void TraceLog::forget_parent() {
  if (std::exchange(process_, getpid()) == process_) return;
  text_.clear();
  tracks_.clear();
  gpu_spans_.clear();
}

// Whole lines in one call, which other processes' calls do not divide.
void TraceLog::write() {
  if (file_ < 0 || text_.empty()) return text_.clear();
  size_t done = 0;
  while (done < text_.size()) {
    const ssize_t written = ::write(file_, text_.data() + done, text_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      log_error(join("trace: ", path_, " cannot be written: ", std::strerror(errno)));
      ::close(std::exchange(file_, -1));
      break;
    }
    done += size_t(written);
  }
  text_.clear();
}

}  // namespace tensorcraft

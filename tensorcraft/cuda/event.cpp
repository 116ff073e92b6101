// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/cuda/session.hpp"
#include "tensorcraft/cuda/stream.hpp"
#include "tensorcraft/cuda/value_flag.hpp"

#include <atomic>
#include <mutex>
#include <utility>

namespace tensorcraft {

Event::Event(int device, bool timing) : device_(Device::cuda(device)) {
  const DeviceGuard guard(device);
  cuda::require_driver().event_create(&handle_, timing ? 0 : cuda::kEventDisableTiming);
}

Event::Event(Device device) : device_(device) {
  if (device.is_cuda())
    *this = Event(device.index);
  else
    flag_ = std::make_unique<cuda::ValueFlag>(device);
}

Event::~Event() {
  if (!handle_) return;
  cuda::quietly_on(device_.index,
                   [this](const cuda::Driver& d) { d.event_destroy.quiet(handle_); });
}

Event::Event(Event&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      device_(other.device_),
      flag_(std::move(other.flag_)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(device_, other.device_);
  std::swap(flag_, other.flag_);
  return *this;
}

namespace {

void check_device(Device event, StreamRef stream, const char* what) {
  if (event.is_cuda() && stream.device() == event.index) return;
  fail(ErrorKind::value, "Event::", what, ": the event belongs to ", event,
       " and the stream to cuda:", stream.device(), "; use a stream of the event's device");
}

void check_in_time(cuda::FlagLine& line) {
  if (!std::atomic_ref(line.timed_out).load(std::memory_order_acquire)) return;
  fail(ErrorKind::timed_out,
       "Event: a stream waited for a value until its time was over, and the "
       "count is ",
       int32_t(std::atomic_ref(line.value).load()),
       "; what the stream did since came too early, and this event cannot be used again");
}

void set_now(cuda::FlagLine& line, int32_t value) {
  std::atomic_ref(line.value).store(uint32_t(value), std::memory_order_release);
}

void wait_now(cuda::FlagLine& line, int32_t value, const Event::Timeout& timeout) {
  if (cuda::wait_on_host(&line.value, WaitCondition::at_least, uint32_t(value), timeout)) return;
  fail(ErrorKind::timed_out, "Event: the count was still ",
       int32_t(std::atomic_ref(line.value).load()), " after ",
       std::chrono::duration<double>(*timeout).count(), " s, expected at least ", value,
       "; is who records it still at work?");
}

}  // namespace

void Event::record(StreamRef stream) {
  check_device(device_, stream, "record");
  const DeviceGuard guard(device_.index);
  cuda::require_driver().event_record(handle_, stream.handle());
}

void Event::wait(StreamRef stream) const {
  if (!device_.is_cuda()) check_device(device_, stream, "wait");
  const DeviceGuard guard(stream.device());
  cuda::require_driver().stream_wait_event(stream.handle(), handle_, 0);
}

bool Event::done() const {
  if (!handle_) return true;
  const DeviceGuard guard(device_.index);
  const int status = cuda::require_driver().event_query.status(handle_);
  if (status == cuda::kErrorNotReady) return false;
  cuda::check(status, "cuEventQuery");
  return true;
}

void Event::synchronize() const {
  if (!handle_) return;
  const DeviceGuard guard(device_.index);
  cuda::require_driver().event_synchronize(handle_);
}

float Event::elapsed_ms(const Event& begin, const Event& end) {
  end.synchronize();
  const DeviceGuard guard(end.device_.index);
  float milliseconds = 0;
  cuda::require_driver().event_elapsed_time(&milliseconds, begin.handle_, end.handle_);
  return milliseconds;
}

// Most events have no count. Two threads may ask for it first.
cuda::ValueFlag& Event::flag() const {
  static constinit FirstMade<ForkSafeMutex> mutex;
  const std::lock_guard lock(*mutex);
  if (!flag_) flag_ = std::make_unique<cuda::ValueFlag>(device_);
  return *flag_;
}

void Event::record(int32_t value, StreamRef stream) {
  cuda::ValueFlag& f = flag();
  check_in_time(f.line());
  if (!device_.is_cuda()) return set_now(f.line(), value);
  cuda::enqueue_write(f.seen_by(stream.device()).value, uint32_t(value), stream, "Event::record");
  f.used_on(stream);
}

void Event::set(int32_t value) {
  cuda::FlagLine& line = flag().line();
  check_in_time(line);
  set_now(line, value);
}

void Event::wait(int32_t value, StreamRef stream, const Timeout& timeout) const {
  cuda::ValueFlag& f = flag();
  check_in_time(f.line());
  if (!device_.is_cuda()) return wait_now(f.line(), value, timeout);
  cuda::enqueue_wait(f.seen_by(stream.device()), WaitCondition::at_least, uint32_t(value), stream,
                     timeout, "Event::wait");
  f.used_on(stream);
}

void Event::synchronize(int32_t value, const Timeout& timeout) const {
  cuda::FlagLine& line = flag().line();
  wait_now(line, value, timeout);
  check_in_time(line);
}

int32_t Event::value() const {
  cuda::FlagLine& line = flag().line();
  check_in_time(line);
  return int32_t(std::atomic_ref(line.value).load(std::memory_order_acquire));
}

}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/stream.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/session.hpp"
#include "tensorcraft/cuda/stream_state.hpp"

#include <utility>
#include <vector>

namespace tensorcraft {
namespace {

// Each thread's stream by device; a device beyond the end is at its default stream. The pointer
// outlives the list: tensors with static storage ask for the stream after it is gone.
thread_local std::vector<CUstream_st*>* current_streams = nullptr;
struct CurrentStreams {
  std::vector<CUstream_st*> list;
  CurrentStreams() { current_streams = &list; }
  ~CurrentStreams() { current_streams = nullptr; }
};

}  // namespace

void StreamRef::synchronize() const {
  const DeviceGuard guard(device_);
  cuda::require_driver().stream_synchronize(handle_);
}

bool StreamRef::is_capturing() const {
  const DeviceGuard guard(device_);
  int state = 0;
  const int status = cuda::require_driver().stream_is_capturing.status(handle_, &state);
  // The default stream's answer while a stream that waits for it is captured.
  if (status == cuda::kErrorStreamCaptureImplicit) return true;
  cuda::check(status, "cuStreamIsCapturing");
  return state != 0;
}

Stream::Stream(int device) {
  const DeviceGuard guard(device);
  CUstream_st* handle = nullptr;
  // Non-blocking: no hidden waits for work on the default stream.
  cuda::require_driver().stream_create(&handle, cuda::kStreamNonBlocking);
  ref_ = StreamRef(handle, device);
  cuda::stream_begins(ref_);
}

Stream::~Stream() {
  if (!ref_.handle()) return;
  cuda::stream_ends(ref_);
  cuda::quietly_on(ref_.device(),
                   [this](const cuda::Driver& d) { d.stream_destroy.quiet(ref_.handle()); });
}

Stream::Stream(Stream&& other) noexcept : ref_(std::exchange(other.ref_, StreamRef())) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(ref_, other.ref_);
  return *this;
}

StreamRef current_stream(int device) {
  const bool known = current_streams && device >= 0 && size_t(device) < current_streams->size();
  return StreamRef(known ? (*current_streams)[size_t(device)] : nullptr, device);
}

void set_current_stream(StreamRef stream) {
  const int device = stream.device();
  if (device < 0) fail(ErrorKind::value, "set_current_stream: cuda:", device, " does not exist");
  thread_local CurrentStreams own;
  if (!current_streams) return;  // the thread is ending
  if (size_t(device) >= own.list.size()) own.list.resize(size_t(device) + 1);
  own.list[size_t(device)] = stream.handle();
}

Event::Event(int device, bool timing) : device_(device) {
  const DeviceGuard guard(device);
  cuda::require_driver().event_create(&handle_, timing ? 0 : cuda::kEventDisableTiming);
}

Event::~Event() {
  if (!handle_) return;
  cuda::quietly_on(device_, [this](const cuda::Driver& d) { d.event_destroy.quiet(handle_); });
}

Event::Event(Event&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), device_(other.device_) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(device_, other.device_);
  return *this;
}

void Event::record(StreamRef stream) {
  if (stream.device() != device_)
    fail(ErrorKind::value, "Event::record: the event belongs to cuda:", device_,
         " and the stream to cuda:", stream.device(), "; use a stream of the event's device");
  const DeviceGuard guard(device_);
  cuda::require_driver().event_record(handle_, stream.handle());
}

void Event::wait(StreamRef stream) const {
  const DeviceGuard guard(stream.device());
  cuda::require_driver().stream_wait_event(stream.handle(), handle_, 0);
}

bool Event::done() const {
  const DeviceGuard guard(device_);
  const int status = cuda::require_driver().event_query.status(handle_);
  if (status == cuda::kErrorNotReady) return false;
  cuda::check(status, "cuEventQuery");
  return true;
}

void Event::synchronize() const {
  const DeviceGuard guard(device_);
  cuda::require_driver().event_synchronize(handle_);
}

float Event::elapsed_ms(const Event& begin, const Event& end) {
  end.synchronize();
  const DeviceGuard guard(end.device_);
  float milliseconds = 0;
  cuda::require_driver().event_elapsed_time(&milliseconds, begin.handle_, end.handle_);
  return milliseconds;
}

}  // namespace tensorcraft

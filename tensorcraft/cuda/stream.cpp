// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/stream.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/session.hpp"
#include "tensorcraft/cuda/stream_priority.hpp"
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

// make_stream() gives the constructor the priority through this.
thread_local int priority_of_next = 0;

}  // namespace

void StreamRef::synchronize() const {
  const DeviceGuard guard(device_);
  cuda::require_driver().stream_synchronize(handle_);
}

bool cuda::is_recorded(const Driver& driver, StreamRef stream) {
  int state = 0;
  const int status = driver.stream_is_capturing.status(stream.handle(), &state);
  // The default stream's answer while a stream that waits for it is captured.
  if (status == kErrorStreamCaptureImplicit) return true;
  check(status, "cuStreamIsCapturing");
  return state != 0;
}

bool StreamRef::is_capturing() const {
  const DeviceGuard guard(device_);
  return cuda::is_recorded(cuda::require_driver(), *this);
}

Stream::Stream(int device) {
  const DeviceGuard guard(device);
  CUstream_st* handle = nullptr;
  const cuda::Driver& driver = cuda::require_driver();
  // Non-blocking: no hidden waits for work on the default stream.
  if (priority_of_next == 0)
    driver.stream_create(&handle, cuda::kStreamNonBlocking);
  else
    driver.stream_create_with_priority(&handle, cuda::kStreamNonBlocking, -priority_of_next);
  ref_ = StreamRef(handle, device);
  cuda::stream_begins(ref_);
}

Stream cuda::make_stream(int device, int priority) {
  struct Scope {
    explicit Scope(int priority) { priority_of_next = priority; }
    ~Scope() { priority_of_next = 0; }
  } const scope(priority);
  return Stream(device);
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

}  // namespace tensorcraft

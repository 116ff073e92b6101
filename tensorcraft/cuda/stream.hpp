// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/device.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

struct CUstream_st;
struct CUevent_st;

namespace tensorcraft {

// Borrows a stream: a driver handle and the device it belongs to. The null handle is the device's
// default stream. Work on a host device is synchronous and ignores the handle.
class StreamRef {
 public:
  // A handle, or the default stream of a device: that of cuda:0 without one.
  StreamRef() = default;
  explicit StreamRef(CUstream_st* handle, int device = 0) : handle_(handle), device_(device) {}
  StreamRef(int) = delete;
  StreamRef(std::nullptr_t) = delete;
  static StreamRef default_stream(int device) {
    return StreamRef(static_cast<CUstream_st*>(nullptr), device);
  }

  // These return what it was made of.
  CUstream_st* handle() const { return handle_; }
  int device() const { return device_; }
  // Waits until all work enqueued so far is done; throws what that work failed with.
  void synchronize() const;
  // Is work recorded into a graph instead of run?
  bool is_capturing() const;
  friend bool operator==(StreamRef, StreamRef) = default;

 private:
  CUstream_st* handle_ = nullptr;
  int device_ = 0;
};

// Owns a stream of a CUDA device; moves only. It never waits for the default stream unless an event
// says so. The destructor does not wait: the driver frees the
// stream when its work is done.
class Stream {
 public:
  // Kind value for an index that does not exist, unsupported without a driver.
  explicit Stream(int device = 0);
  ~Stream();
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  // Borrowed: valid while this object lives.
  operator StreamRef() const { return ref_; }  // NOLINT
  StreamRef ref() const { return ref_; }       // the same by name

 private:
  StreamRef ref_;
};

// The stream this thread launches on for `device` when none is given: the default stream until
// set_current_stream() says otherwise.
StreamRef current_stream(int device);
void set_current_stream(StreamRef stream);

namespace cuda {
class ValueFlag;
}

// Owns an event: a point in a stream, and beside it a count that streams and the host raise and
// wait for. Moves only. A wait for a value may be enqueued before the value is recorded; a wait for
// the point cannot, as it is over if nothing was recorded.
class Event {
 public:
  // How long a wait may take; none: for ever.
  using Timeout = std::optional<std::chrono::nanoseconds>;
  // Only one with timing can be asked for elapsed_ms().
  explicit Event(int device = 0, bool timing = false);
  // On a host device there is no point, only the count: record() sets it at once, and wait() makes
  // the calling thread wait. One thread may wait while another records.
  explicit Event(Device device);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  // Returns the device that it was made for.
  Device device() const { return device_; }
  // The point that `stream` has been given work up to now; a second call moves it.
  void record(StreamRef stream);
  // Work enqueued later on `stream` starts after this event; the host does not wait.
  void wait(StreamRef stream) const;
  // Has the stream passed it? Does not wait.
  bool done() const;
  // Waits until it has; throws what the work before it failed with.
  void synchronize() const;
  // Milliseconds between two recorded timing events; waits for the later one.
  static float elapsed_ms(const Event& begin, const Event& end);

  // The count, which begins at 0 and should only grow: it becomes the value once the stream has
  // done its work so far, or at once. The event must outlive the launches of a graph that records
  // or waits for values.
  void record(int32_t value, StreamRef stream);
  void set(int32_t value);
  // Work enqueued later on `stream` starts once the count is at least the value. With a time-out a
  // kernel of one thread waits instead of the driver: when the time is over the work behind it runs
  // all the same, and every later use of a value fails with kind timed_out.
  void wait(int32_t value, StreamRef stream, const Timeout& timeout = {}) const;
  // Makes the calling thread wait for it; kind timed_out if it takes longer, cancelled if the
  // thread is interrupted.
  void synchronize(int32_t value, const Timeout& timeout = {}) const;
  // Returns its present value. Kind timed_out if a wait of a stream took too long.
  int32_t value() const;

 private:
  cuda::ValueFlag& flag() const;
  CUevent_st* handle_ = nullptr;
  Device device_;
  mutable std::unique_ptr<cuda::ValueFlag> flag_;
};

}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/device.hpp"

#include <cstddef>
#include <cstdint>

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

  // What it was made of.
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

// Owns an event: a point in a stream. Moves only.
class Event {
 public:
  // Only one with timing can be asked for elapsed_ms().
  explicit Event(int device = 0, bool timing = false);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
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

 private:
  CUevent_st* handle_ = nullptr;
  int device_ = 0;
};

}  // namespace tensorcraft

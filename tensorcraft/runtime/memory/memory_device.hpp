// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tensorcraft::memory {

// A point in a stream that a pool recorded.
class Mark {
 public:
  virtual ~Mark() = default;
  // Moves it to what the stream holds up to now.
  virtual void record(StreamRef stream) = 0;
  virtual bool done() = 0;
  // Orders later work of the stream behind the mark; the host does not wait.
  virtual void order_before(StreamRef stream) = 0;
  virtual void wait() = 0;  // on the host
};

// The pool asks for this state of a stream in each call.
struct StreamState {
  uint64_t id = 0;       // never used again for another stream
  uint64_t capture = 0;  // of the graph that it is recorded into, as unique; 0 if it is not
};

// A pool asks its device through this interface, so that the same pool runs over a GPU, over
// page-locked host memory and over a simulation. Calls throw what the device refuses, and then have
// done nothing.
class MemoryDevice {
 public:
  virtual ~MemoryDevice() = default;
  // "cuda:0", for errors.
  virtual const char* name() const = 0;

  // Memory to cut blocks from, aligned to the granule; null if there is no room. May be asked for
  // while a stream is recorded.
  virtual void* take(size_t bytes) = 0;
  // Nothing uses it any more.
  virtual void give(void* memory) noexcept = 0;
  // Bytes that the device has, and has free; 0 if it does not say.
  virtual size_t total_bytes() const = 0;
  virtual size_t free_bytes() const = 0;

  // Throws if the device cannot be used any more.
  virtual void require_usable() const = 0;
  virtual bool usable() const noexcept = 0;

  virtual StreamState look(StreamRef stream) = 0;
  // Can a mark be recorded at any time until the pool is told that the stream ends? Of other
  // streams only while a caller names them.
  virtual bool lasts(StreamRef stream) = 0;
  // Can a mark be recorded now? Not while work of the stream is recorded into a graph.
  virtual bool can_mark(StreamRef stream) = 0;
  virtual std::unique_ptr<Mark> make_mark() = 0;

  // Enqueued on the stream.
  virtual void copy(void* to, const void* from, size_t bytes, StreamRef stream) = 0;
  virtual void fill(void* to, unsigned char value, size_t bytes, StreamRef stream) = 0;
  virtual void synchronize(StreamRef stream) = 0;

  // Calls `release(owned)` once the graph that the stream is recorded into, and all that was made
  // of it, are gone; on any thread, which may not call the device.
  virtual void give_to_graph(StreamRef stream, void (*release)(void*), void* owned) = 0;
};

}  // namespace tensorcraft::memory

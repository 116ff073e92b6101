// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"

#include <memory>
#include <string_view>
#include <vector>

namespace tensorcraft::op {

// While one lives on a thread, every operator call of that thread is timed: wall time on the host,
// events around the launch on a GPU. Nested traces: the inner one records. Traces may end in any
// order and on any thread.
class Trace {
 public:
  // The calls of one operator by one variant on one device.
  struct Row {
    // A row holds what its calls have in common, their number, and their time in all.
    std::string_view op, variant;
    Device device;
    long calls = 0;
    double milliseconds = 0;
  };

  Trace();
  ~Trace() { stop(); }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  // Stops recording; the rows stay readable.
  void stop();
  // One row for each (operator, variant, device), longest first. Waits for the recorded work.
  std::vector<Row> rows() const;

  struct Recording;
  // Returns what this thread records into, or null. Operators ask at each call.
  static const std::shared_ptr<Recording>& active();

  // Times one call, from construction to destruction, and is a range of NVTX if a profiler
  // listens.
  class Scope {
   public:
    // Without a recording nothing is timed.
    Scope(std::shared_ptr<Recording> recording, std::string_view op, std::string_view variant,
          Device device, StreamRef stream);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::shared_ptr<Recording> recording_;
    size_t index_ = 0;
    bool has_range_ = false;
    StreamRef stream_;
  };

 private:
  // Shared with the thread, which may ask for it once the trace is gone.
  std::shared_ptr<Recording> recording_;
};

}  // namespace tensorcraft::op

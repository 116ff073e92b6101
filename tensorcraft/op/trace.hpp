// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace tensorcraft::op {

// While one lives on a thread, every operator call of that thread is timed: wall time on the host,
// events around the launch on a GPU. Nested traces: the inner one records.
class Trace {
 public:
  struct Row {
    std::string_view op, variant;
    Device device;
    long calls = 0;
    double milliseconds = 0;
  };

  Trace();
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  // Stops recording; the rows stay readable.
  void stop();
  // One row for each (operator, variant, device), longest first. Waits for the recorded work.
  std::vector<Row> rows() const;

  // The trace of this thread, or null. Operators ask at each call.
  static Trace* active();

  // Times one call, from construction to destruction.
  class Scope {
   public:
    Scope(Trace* trace, std::string_view op, std::string_view variant, Device device,
          StreamRef stream);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Trace* trace_;
    size_t index_ = 0;
    StreamRef stream_;
  };

 private:
  struct Call {
    std::string_view op, variant;
    Device device;
    std::chrono::steady_clock::time_point start, end;
    std::optional<Event> start_event, end_event;
  };
  std::vector<Call> calls_;
  Trace* outer_;
  bool recording_ = true;
};

}  // namespace tensorcraft::op

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/device.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/cuda/stream.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tensorcraft {

// Writes what a process does, as events for a trace viewer, into a file of the Trace Event Format.
// Spans and instants lie on tracks, which have names. A traced process writes as it goes, one line
// per event, so that a killed one leaves what it did. Several processes may write into one file.
// Safe for concurrent use; it throws nothing once it is made, and says once in the log that it
// cannot write.
class TraceLog {
 public:
  // An event's time is of the steady clock.
  using Time = std::chrono::nanoseconds;
  // A viewer shows these of an event beside its name and time.
  using Details = std::vector<std::pair<std::string_view, std::string>>;

  // That of this process if the setting `trace` names a file, else null.
  static TraceLog* of_process();

  // Appends to `path`, which it makes if it does not exist. Kind io if it cannot.
  explicit TraceLog(std::string path);
  ~TraceLog();
  TraceLog(const TraceLog&) = delete;
  TraceLog& operator=(const TraceLog&) = delete;

  static Time now() { return std::chrono::steady_clock::now().time_since_epoch(); }
  // Something that took from `begin` to `end`.
  void span(std::string_view track, std::string_view name, Time begin, Time end,
            const Details& details = {});
  // Something that happened at one time.
  void instant(std::string_view track, std::string_view name, Time at, const Details& details = {});
  // To be called before the first event of a GPU is recorded: the time of its clock is taken.
  void watch(int device);
  // Work of a watched GPU between two recorded timing events, on a track of `stream`. It is written
  // once the GPU has passed it.
  void gpu_span(std::string_view name, StreamRef stream, Event begin, Event end,
                const Details& details = {});
  // Writes what has ended so far; `wait`: waits for the GPU's work first.
  void flush(bool wait = false);

 private:
  struct GpuSpan {
    std::string name;
    StreamRef stream;
    Event begin, end;
    Details details;
  };
  // A time of both clocks.
  struct Epoch {
    Event event;
    Time host;
  };
  void add(std::string_view track, std::string_view name, char phase, Time begin, Time length,
           const Details& details);
  void resolve(bool wait);
  void write();
  int track_number(std::string_view track);
  std::string track_of(StreamRef stream);
  void forget_parent();

  const std::string path_;
  ForkSafeMutex mutex_;  // guards all below
  int file_ = -1;
  int process_;
  std::string text_;  // lines to be written
  std::map<std::string, int, std::less<>> tracks_;
  std::map<std::pair<int, CUstream_st*>, int> streams_;
  std::map<int, Epoch> epochs_;    // by device
  std::deque<GpuSpan> gpu_spans_;  // in the order in which they were enqueued
};

}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/cuda/stream.hpp"
#include "tensorcraft/runtime/memory/memory_device.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace tensorcraft::dispatch {

// Launches since the process began, of those that were watched. Of what was launched, `in_flight`
// is not known to have ended.
struct Counts {
  // The driver took it; it ended; the driver refused it, or lost the device under it; its task was
  // cancelled before it.
  uint64_t launched = 0, completed = 0, failed = 0, cancelled = 0;
  uint64_t in_flight = 0;
  friend bool operator==(const Counts&, const Counts&) = default;
};

// Counts the launches of streams and bounds how many of a stream are in flight. Marks tell how far
// a stream is, one for several launches, as a mark costs more than a launch may. Safe for
// concurrent use; nothing is held while it waits.
class Controller {
 public:
  // Makes a mark that can be recorded in a stream.
  using MakeMark = std::function<std::unique_ptr<memory::Mark>(StreamRef)>;
  explicit Controller(MakeMark make_mark) : make_mark_(std::move(make_mark)) {}

  // Before a launch: waits on the host until fewer than the limit are in flight. False if no stream
  // has a limit, so that nothing was counted.
  bool admit(StreamRef stream);
  // After it, one of the three, with what admit() said; withdraw: it was not asked for after all.
  void launched(StreamRef stream, bool admitted) noexcept;
  void failed(StreamRef stream, bool admitted) noexcept;
  void withdraw(StreamRef stream, bool admitted) noexcept;
  // A launch that was not made, or is known to have ended when it returns.
  void note_cancelled() noexcept;
  void note_completed() noexcept;

  // So many launches of the stream may be in flight, 0 for any number. Kind value below 0.
  void set_limit(StreamRef stream, int limit);
  int limit(StreamRef stream) const;
  bool has_limits() const;
  // A stream is about to be destroyed: what it holds still ends.
  void stream_ends(StreamRef stream) noexcept;

  // `ask`: also marks what was launched since the last mark, in streams that tell their end.
  Counts counts(const std::function<bool(StreamRef)>& ask = nullptr);

 private:
  struct Lane {
    StreamRef stream;
    int limit = 0;
    uint64_t launched = 0, ended = 0;  // ended or failed
    uint64_t admitted = 0;             // and neither launched nor failed yet
    uint64_t marked = 0;               // of the launched, by the last mark
    std::deque<std::pair<std::shared_ptr<memory::Mark>, uint64_t>> marks;  // and up to which
    uint64_t in_flight() const { return launched - ended; }
  };
  using Lanes = std::map<std::pair<int, CUstream_st*>, Lane>;
  static uint64_t spacing(const Lane& lane);

  Lane& lane_of(StreamRef stream);
  void mark(Lane& lane) noexcept;
  void retire(Lane& lane) noexcept;
  void lose(Lane& lane) noexcept;

  const MakeMark make_mark_;
  std::atomic<bool> limits_ = false;  // a stream has one, or had one
  mutable ForkSafeMutex mutex_;       // guards all below
  std::condition_variable changed_;
  Lanes lanes_;
  std::map<int, std::vector<std::shared_ptr<memory::Mark>>> idle_;  // by device
  Counts counts_;
};

}  // namespace tensorcraft::dispatch

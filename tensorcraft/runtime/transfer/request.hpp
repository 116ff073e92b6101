// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace tensorcraft::transfer {

// A duration, or the time since whatever moment the clock counts from.
using Time = std::chrono::nanoseconds;

// Which lane a transfer takes, seen from the engine's device: from the host, to the host, within
// the device, to another device.
enum class Direction : uint8_t { h2d, d2h, d2d, peer };
inline constexpr size_t kDirections = 4;
// The state of a transfer; the last three are terminal.
enum class State : uint8_t { queued, running, completed, failed, cancelled };
// The names, as messages spell them.
std::string_view to_string(Direction direction);
std::string_view to_string(State state);
// Has it ended?
constexpr bool is_terminal(State state) { return state >= State::completed; }

// Describes a copy. The two ranges do not overlap.
struct Request {
  // Where to, where from, how much.
  void* to = nullptr;
  const void* from = nullptr;
  size_t bytes = 0;
  // In the place of `from`, for h2d: writes the `bytes` of the source that begin at `at`. Called by
  // threads of the stager, several at a time; what it throws fails the transfer.
  std::function<void(void* to, size_t at, size_t bytes)> produce{};
  // In the place of `to`, for d2h: takes the `bytes` of the source that begin at `at`, likewise.
  std::function<void(const void* from, size_t at, size_t bytes)> consume{};
  Direction direction = Direction::h2d;
  int peer = 0;      // under Direction::peer: the index of the device that `to` belongs to
  int priority = 0;  // the highest first; equals go in the order of submission
  // Copies start after what these streams hold when the transfer is submitted: whoever wrote the
  // source, or used the destination before. Host memory is ready at the submission.
  std::vector<StreamRef> after{};
  // Owns source and destination: let go of once no copy can touch them any more, by the thread that
  // finds that out.
  std::shared_ptr<const void> keep{};
  // Copies that need no staging are enqueued as soon as the transfer starts, so that a stream can
  // be ordered behind them without a wait of the host. Else a few pieces are ahead, so that a
  // cancelled transfer or one of a lower priority stops soon.
  bool ahead = false;
};

// The limits of one lane.
struct LaneLimits {
  int max_in_flight = 16;       // transfers that have started and not ended
  double bytes_per_second = 0;  // 0: none
};

// The bounds of an engine.
struct Options {
  std::array<LaneLimits, kDirections> lanes{};  // by Direction
  // The staging ring of each direction of the host: pageable memory goes through it in pieces of
  // at most one slot.
  size_t slot_bytes = size_t(4) << 20;
  int slots = 12;                          // of each direction
  size_t direct_bytes = size_t(16) << 20;  // a piece of a copy that needs no staging
  size_t window_bytes = size_t(48) << 20;  // of such pieces that a lane has ahead
  size_t inline_bytes = size_t(64) << 10;  // the submitter itself stages pieces up to this
  // Returns the limits of a direction, to be set.
  LaneLimits& limits(Direction direction) { return lanes[size_t(direction)]; }
};

// Counts the work that one lane did and has to do.
struct LaneStatistics {
  // Numbers of transfers now, and since the beginning.
  size_t queued = 0, running = 0;
  uint64_t completed = 0, failed = 0, cancelled = 0;
  uint64_t bytes = 0;       // copied
  Time busy{0};             // in which at least one transfer ran
  double gb_per_s() const;  // of that time; 0 before any
};
using Statistics = std::array<LaneStatistics, kDirections>;  // by Direction

// The bytes of a piece that goes through a slot: small enough that several threads share a transfer
// of middle size.
size_t staged_piece_bytes(size_t bytes, size_t slot_bytes);

}  // namespace tensorcraft::transfer

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/fork.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

namespace tensorcraft {

// Holds memory of an allocator that can be had again, such as weights whose file is at hand.
class Reclaimer {
 public:
  // A moment of use.
  using LastUse = std::chrono::steady_clock::time_point;
  virtual ~Reclaimer() = default;
  // Gives at least so many bytes back to the allocator, all it can spare if that is less, of what
  // was last used at `until` or before; returns how many. Runs on a thread whose allocation found
  // no room, on several at once too, while no lock of the allocator is held. It does not allocate
  // from it.
  virtual size_t reclaim(size_t bytes, LastUse until) = 0;
  // When the least recently used of what it can give was last used. One that keeps no record is
  // asked before all that do.
  virtual LastUse least_recent_use() { return LastUse::min(); }
};

namespace memory {

// The reclaimers of an allocator. Safe for concurrent use.
class Reclaimers {
 public:
  // One that is gone is forgotten.
  void add(std::weak_ptr<Reclaimer> reclaimer);
  // Asks each time the one that has the least recently used of all, of equals the one that was
  // added first, until they gave so many bytes; returns how many they gave.
  size_t reclaim(size_t bytes);

 private:
  std::vector<std::shared_ptr<Reclaimer>> alive();

  ForkSafeMutex mutex_;  // not held while a reclaimer is asked
  std::vector<std::weak_ptr<Reclaimer>> all_;
};

}  // namespace memory
}  // namespace tensorcraft

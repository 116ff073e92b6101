// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace tensorcraft {

// Holds memory of an allocator that can be had again, such as weights whose file is at hand.
class Reclaimer {
 public:
  virtual ~Reclaimer() = default;
  // Gives at least so many bytes back to the allocator, all it can spare if that is less; returns
  // how many. Runs on a thread whose allocation found no room, on several at once too, while no
  // lock of the allocator is held. It does not allocate from it.
  virtual size_t reclaim(size_t bytes) = 0;
};

namespace memory {

// The reclaimers of an allocator. Safe for concurrent use.
class Reclaimers {
 public:
  // One that is gone is forgotten.
  void add(std::weak_ptr<Reclaimer> reclaimer);
  // Asks one after another, as they were added, until they gave so many bytes; returns how many
  // they gave.
  size_t reclaim(size_t bytes);

 private:
  std::vector<std::shared_ptr<Reclaimer>> alive();

  std::mutex mutex_;  // not held while a reclaimer is asked
  std::vector<std::weak_ptr<Reclaimer>> all_;
};

}  // namespace memory
}  // namespace tensorcraft

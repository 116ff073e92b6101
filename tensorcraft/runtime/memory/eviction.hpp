// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/allocator.hpp"
#include "tensorcraft/runtime/memory/timeline.hpp"

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

namespace tensorcraft {

using BlockId = uint64_t;

// A block that a pool may move to the host and back: it is known by its id, and its address holds
// while it is pinned.
struct MemoryBlock {
  // A block is on the GPU or on the host, never on both.
  BlockId id = 0;
  size_t size = 0;
  void* device_ptr = nullptr;
  void* host_data = nullptr;
  uint64_t last_access = 0;  // counts accesses of the pool
  int pins = 0;
  bool on_gpu() const { return device_ptr != nullptr; }
  bool on_host() const { return host_data != nullptr; }
};

namespace memory {

// A movable block with what the pool needs to move it.
struct Movable : MemoryBlock {
  Uses uses;  // work on the block, wherever it is
};

// The movable blocks of a pool, in the order in which they were used last. Which of them is moved
// is decided here, how is the pool's. Not safe for concurrent use.
class EvictionOrder {
 public:
  Movable& add(size_t bytes, void* device_ptr);
  void remove(BlockId id);
  // Kind value for an id that there is not, with the caller's name for the call.
  Movable& get(BlockId id, std::string_view call);
  void touch(Movable& block);
  // It is on the other side now; one that came back is the most recently used.
  void moved(Movable& block);
  // The resident, unpinned block that was used least recently, of those for which `accepts` holds;
  // null if there is none.
  template <class Accepts>
  Movable* victim(const Accepts& accepts) {
    for (Movable& block : resident_)
      if (block.pins == 0 && accepts(block)) return &block;
    return nullptr;
  }

  // The least recently used first.
  std::vector<MemoryBlock> all() const;

 private:
  using Blocks = std::list<Movable>;
  Blocks resident_;  // the least recently used first
  Blocks evicted_;
  std::unordered_map<BlockId, Blocks::iterator> blocks_;
  uint64_t last_id_ = 0, clock_ = 0;
};

}  // namespace memory
}  // namespace tensorcraft

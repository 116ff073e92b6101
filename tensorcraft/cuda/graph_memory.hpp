// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/stream.hpp"

#include <array>
#include <mutex>

namespace tensorcraft::cuda {

inline constexpr size_t kMaxGraphBytes = size_t(256) << 10;

// Memory for what a recorded call keeps between its kernels, owned by the graph that `stream` is
// recorded into: nothing else gets it until the graph and all that was made of it are destroyed and
// have run. 256-byte aligned, not cleared. Unlike allocate() it adds no nodes, which would stand
// between two kernels, and allow a graph one instantiation only. Null if the stream is not
// recorded, for 0 or more than kMaxGraphBytes bytes, and if the driver refuses: use allocate().
void* allocate_for_graph(size_t bytes, StreamRef stream);

// Calls `release(owned)` once the graph that `stream` is recorded into and all that was made of it
// are destroyed and have run: on a thread that may not call the driver. Throws if the driver
// refuses, and then never calls it.
void give_to_graph(StreamRef stream, void (*release)(void*), void* owned);

// The blocks of a device that graphs own, or have owned: those are given out again. The counters of
// streams are some too (stream_counter.hpp). Cut from slabs that live as long as the process, since
// a block comes back on a thread that may not call the driver. Internal to cuda/.
class GraphMemory {
 public:
  struct Block {
    GraphMemory& owner;
    DevicePointer address;
    size_t order;
    Block* next = nullptr;  // in the list of unused ones
  };

  // A block of at least so many bytes; null if there is no room for another slab.
  Block* take(const Driver& driver, size_t bytes);
  static void give_back(Block& block) noexcept;

 private:
  // Sizes of blocks: kSmallest bytes, then each the double of the one before, up to kMaxGraphBytes.
  static constexpr size_t kSmallest = 256, kOrders = 11, kSlab = size_t(2) << 20;
  static_assert(kSmallest << (kOrders - 1) == kMaxGraphBytes);

  Block* take(size_t order);  // null if another slab is needed

  std::mutex mutex_;
  std::array<Block*, kOrders> unused_{};
  DevicePointer slab_ = 0;  // what is left of the last
  size_t left_ = 0;
};

}  // namespace tensorcraft::cuda

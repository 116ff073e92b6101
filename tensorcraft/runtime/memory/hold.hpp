// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/pool.hpp"

namespace tensorcraft {

// Keeps the memory of one recording until its graph, and all that was made of it, are gone.
struct MemoryPool::Hold {
  MemoryPool& pool;
  uint64_t capture;
  std::vector<memory::Chunk*> chunks = {};
  std::vector<BlockId> pinned = {};
  Hold* next = nullptr;  // in the list of those whose graph is gone
};

}  // namespace tensorcraft

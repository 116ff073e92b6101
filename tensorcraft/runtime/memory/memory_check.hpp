// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/block.hpp"
#include "tensorcraft/runtime/memory/memory_device.hpp"

#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tensorcraft::memory {

// Says how a pool checks its callers. Each call then waits for its stream: for debugging alone.
struct CheckOptions {
  // Blocks lie between red zones, freed memory becomes NaN, both are looked at later.
  bool enabled = false;
  // So many freed blocks are kept back, so that a late write is seen.
  size_t quarantine = 64;
};

// Red zones around blocks, poison in freed ones, and who allocated and freed them. Not safe for
// concurrent use.
class MemoryCheck {
 public:
  // A NaN in every floating dtype that has one.
  static constexpr unsigned char kPoison = 0xff, kZone = 0xfd;

  MemoryCheck(MemoryDevice& device, const CheckOptions& options)
      : device_(device), options_(options) {}

  // Bytes before and after each block; 0 if nothing is checked.
  size_t zone() const { return options_.enabled ? kGranule : 0; }
  void hand_out(const Chunk& chunk, StreamRef stream, bool is_recorded);
  struct Finding {
    std::string wrong;         // what was done to a block; empty if all is well
    Chunk* leaving = nullptr;  // a chunk that may be given out again
  };
  // Checks the zones, poisons the block and keeps it back.
  Finding take_back(Chunk& chunk, StreamRef stream);
  // All that is kept back.
  std::vector<Chunk*> empty_quarantine();
  // Where memory was allocated and freed, as lines of an error; empty if it is not known.
  std::string past(const void* data) const;

 private:
  struct Past {
    size_t bytes = 0;
    std::vector<void*> allocated, freed;
  };
  struct Kept {
    Chunk* chunk;
    StreamRef stream;
  };
  std::string changed(const std::byte* from, size_t bytes, unsigned char expected,
                      StreamRef stream);

  MemoryDevice& device_;
  const CheckOptions options_;
  std::deque<Kept> quarantine_;
  std::unordered_map<const void*, Past> pasts_;  // by the caller's address
};

}  // namespace tensorcraft::memory

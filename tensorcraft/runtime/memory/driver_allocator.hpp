// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/allocator.hpp"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tensorcraft::memory {

// The driver's own stream-ordered memory, each call one of the driver's. In a recording it adds
// nodes to the graph. Safe for concurrent use.
class DriverAllocator final : public Allocator {
 public:
  Block allocate(size_t bytes, StreamRef stream) override;
  void deallocate(Block block, StreamRef stream) noexcept override;
  void record(const void* data, StreamRef stream) override;
  size_t trim() override { return 0; }  // the driver keeps what it keeps
  AllocatorStatistics statistics() const override;

 private:
  struct Live {
    size_t bytes;
    std::vector<StreamRef> others;  // that use it too
  };
  mutable std::mutex mutex_;  // not held while the driver is called
  std::unordered_map<const void*, Live> live_;
  AllocatorStatistics counts_;
};

}  // namespace tensorcraft::memory

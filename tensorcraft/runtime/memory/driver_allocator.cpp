// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/driver_allocator.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/log.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/memory.hpp"

#include <algorithm>

namespace tensorcraft::memory {

Block DriverAllocator::allocate(size_t bytes, StreamRef stream) {
  if (bytes == 0) return {};
  void* const data = with_reclaimers(bytes, [&] { return cuda::allocate(bytes, stream); });
  const std::lock_guard lock(mutex_);
  live_[data] = {bytes, {}};
  ++counts_.live_blocks;
  ++counts_.allocations;
  ++counts_.driver_allocations;
  counts_.live_bytes += int64_t(bytes);
  counts_.peak_used = std::max(counts_.peak_used, counts_.live_bytes);
  return {data, bytes};
}

void DriverAllocator::deallocate(Block block, StreamRef stream) noexcept {
  if (!block.data || !cuda::usable()) return;
  std::vector<StreamRef> others;
  {
    const std::lock_guard lock(mutex_);
    const auto known = live_.find(block.data);
    if (known == live_.end()) {
      log_error("memory was freed that is not in use");
      return;
    }
    --counts_.live_blocks;
    counts_.live_bytes -= int64_t(known->second.bytes);
    others = std::move(known->second.others);
    live_.erase(known);
  }
  try {
    for (const StreamRef other : others) {
      Event done(other.device());
      done.record(other);
      done.wait(stream);
    }
  } catch (const std::exception& error) {
    log_error(
        join("memory is not freed, as a stream that uses it cannot be waited for: ", error.what()));
    return;
  }
  cuda::deallocate(block.data, stream);
}

void DriverAllocator::record(const void* data, StreamRef stream) {
  const std::lock_guard lock(mutex_);
  const auto known = live_.find(data);
  if (known == live_.end())
    fail(ErrorKind::value, "record: ", data, " is no block in use; it was freed before, or comes ",
         "from elsewhere");
  std::vector<StreamRef>& others = known->second.others;
  if (std::ranges::find(others, stream) == others.end()) others.push_back(stream);
}

AllocatorStatistics DriverAllocator::statistics() const {
  const std::lock_guard lock(mutex_);
  AllocatorStatistics now = counts_;
  now.used = now.reserved = now.live_bytes;
  now.peak_reserved = now.peak_used;
  return now;
}

}  // namespace tensorcraft::memory

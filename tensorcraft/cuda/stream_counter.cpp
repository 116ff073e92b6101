// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/stream_counter.hpp"

#include "tensorcraft/cuda/session.hpp"

namespace tensorcraft::cuda {

DevicePointer StreamCounters::of(const Driver& driver, CUstream_st* stream, GraphMemory& memory) {
  uint64_t number = 0;
  if (driver.stream_get_id.status(stream, &number) != kSuccess) return 0;
  const std::lock_guard lock(mutex_);
  const auto known = counters_.find(number);
  if (known != counters_.end()) return known->second;
  if (counters_.size() == kMax) return 0;
  GraphMemory::Block* const block = memory.take(driver, sizeof(uint32_t));
  if (!block) return 0;
  // Under the lock, so that no launch of another thread on the stream comes before it.
  if (driver.memset_async.status(block->address, 0, sizeof(uint32_t), stream) != kSuccess) {
    GraphMemory::give_back(*block);
    return 0;
  }
  counters_.emplace(number, block->address);
  return block->address;
}

uint32_t* counter_of(StreamRef stream) {
  if (stream.is_capturing()) return nullptr;
  const DeviceGuard guard(stream.device());
  DeviceSlot& slot = device_slot(stream.device());
  const DevicePointer counter =
      slot.stream_counters.of(require_driver(), stream.handle(), slot.graph_memory);
  return reinterpret_cast<uint32_t*>(counter);
}

}  // namespace tensorcraft::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/device.hpp"
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/cuda/stream.hpp"

#include <cstddef>
#include <cstdint>

namespace tensorcraft {

// One allocation: its address and the size that was asked for.
struct Block {
  void* data = nullptr;
  size_t bytes = 0;
};

struct AllocatorStatistics {
  int64_t live_blocks = 0;
  int64_t live_bytes = 0;
};

// The source of tensors' memory. Calls are stream-ordered: a block may be used by work enqueued on
// `stream` after allocate(), and deallocate() waits for work enqueued on `stream` before it.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // 256-byte aligned; {nullptr, 0} for 0 bytes; kind out_of_memory if there is no room.
  virtual Block allocate(size_t bytes, StreamRef stream) = 0;
  virtual void deallocate(Block block, StreamRef stream) noexcept = 0;
  virtual AllocatorStatistics statistics() const = 0;
};

// Bytes of so many elements; kind out_of_memory if 64 bits do not count them.
size_t bytes_of(DType dtype, int64_t elements);

// The allocator of a device. One a device, alive until the process ends.
Allocator& allocator(Device device);

}  // namespace tensorcraft

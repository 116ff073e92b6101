// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/pool.hpp"

#include <cstddef>

namespace tensorcraft {

// Page-locked host memory that streams of a CUDA device copy from and to, kept between uses. Its
// quota is half of the machine's memory. Blocks that the device's pool evicts go there.
MemoryPool& pinned_pool(int device = 0);

// Owns page-locked host memory. Moves only. It goes back to its pool in the order of its stream,
// and may then be handed out once the work on it is done.
class PinnedBuffer {
 public:
  // No memory.
  PinnedBuffer() = default;
  // Copies on `stream` use it. Kind out_of_memory if there is no room, unsupported without a GPU.
  PinnedBuffer(size_t bytes, StreamRef stream);
  ~PinnedBuffer();
  PinnedBuffer(PinnedBuffer&& other) noexcept;
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;
  // Copies on another stream use it too; that stream must outlive it.
  void record(StreamRef stream);
  // Where it is, 256-byte aligned, and how much.
  void* data() const { return block_.data; }
  size_t bytes() const { return block_.bytes; }

 private:
  MemoryPool* pool_ = nullptr;
  Block block_;
  StreamRef stream_;
};

}  // namespace tensorcraft

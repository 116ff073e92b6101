// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/pinned.hpp"

#include <utility>

namespace tensorcraft {

PinnedBuffer::PinnedBuffer(size_t bytes, StreamRef stream)
    : pool_(&pinned_pool(stream.device())),
      block_(pool_->allocate(bytes, stream)),
      stream_(stream) {}

PinnedBuffer::~PinnedBuffer() {
  if (pool_) pool_->deallocate(block_, stream_);
}

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept
    : pool_(other.pool_), block_(std::exchange(other.block_, {})), stream_(other.stream_) {}

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(block_, other.block_);
  std::swap(stream_, other.stream_);
  return *this;
}

void PinnedBuffer::record(StreamRef stream) {
  if (pool_) pool_->record(block_.data, stream);
}

}  // namespace tensorcraft

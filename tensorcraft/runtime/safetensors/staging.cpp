// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/safetensors/staging.hpp"

#include "tensorcraft/cuda/memory.hpp"

namespace tensorcraft::safetensors {

Staging::Slot::Slot(StreamRef stream) : buffer(kBytes, stream), emptied(stream.device()) {}

Staging::Staging(StreamRef stream) : stream_(stream), slots_{Slot(stream), Slot(stream)} {}

// A copy may still read the buffers when an exception passes.
Staging::~Staging() {
  for (Slot& slot : slots_) {
    try {
      if (slot.in_use) slot.emptied.synchronize();
    } catch (...) {
      // The failed work is reported by the next call on the stream.
    }
  }
}

std::byte* Staging::next() {
  current_ = 1 - current_;
  Slot& slot = slots_[current_];
  if (slot.in_use) slot.emptied.synchronize();
  slot.in_use = false;
  return static_cast<std::byte*>(slot.buffer.data());
}

void Staging::upload(void* to, size_t bytes) {
  Slot& slot = slots_[current_];
  cuda::copy_async(to, slot.buffer.data(), bytes, stream_);
  slot.emptied.record(stream_);
  slot.in_use = true;
}

}  // namespace tensorcraft::safetensors

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"

#include <cstddef>
#include <span>

namespace tensorcraft::safetensors {

// Two page-locked buffers in turn: one is filled from the file while the copy engine empties the
// other.
class Staging {
 public:
  static constexpr size_t kBytes = size_t(16) << 20;

  explicit Staging(StreamRef stream);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // The next buffer of kBytes, once its earlier copy is done.
  std::byte* next();
  // Enqueues the copy of the first `bytes` of the buffer that next() gave.
  void upload(void* to, size_t bytes);
  void finish() { stream_.synchronize(); }

 private:
  struct Slot {
    explicit Slot(StreamRef stream);
    PinnedBuffer buffer;
    Event emptied;
    bool in_use = false;
  };

  StreamRef stream_;
  Slot slots_[2];
  int current_ = 1;
};

}  // namespace tensorcraft::safetensors

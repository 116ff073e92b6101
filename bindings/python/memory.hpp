// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>

namespace tensorcraft::python {

namespace nb = nanobind;

// A strong reference that any thread may drop: without the GIL the decrement is queued and runs
// under it later.
std::shared_ptr<const void> share(nb::object object);

// What a tc.Tensor keeps alive. CUDA memory knows its home, the stream it was made on. Work on
// another stream, a foreign owner and an export make it shared. Memory that is not shared goes back
// in the order of its home; shared memory waits for the device first, since not every stream that
// touched it is known.
class Memory {
 public:
  Memory(Tensor tensor, StreamRef home);
  Memory(std::shared_ptr<const void> owner, Device device, StreamRef home)
      : owner_(std::move(owner)), device_(device), home_(home) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void used_on(StreamRef stream) {
    if (owner_ || !(stream == home_)) set_shared();
  }
  void set_shared() { shared_.store(true, std::memory_order_relaxed); }
  // Made while a graph was recorded: its launches write it, on any stream.
  bool is_recorded() const { return recorded_; }
  // Work enqueued later on `stream` comes after what was done to the memory so far.
  void order_before(StreamRef stream) const;

 private:
  Tensor tensor_;
  std::shared_ptr<const void> owner_;
  Device device_;
  StreamRef home_;
  const bool recorded_ = false;
  std::atomic<bool> shared_ = false;
};

// tc.Tensor: a view with a share in its memory. Never changes.
struct PyTensor {
  TensorView view;
  std::shared_ptr<Memory> memory;
};
PyTensor own(Tensor tensor, StreamRef home);

// Waits for all work on a device, without the GIL.
void wait_for(Device device);

}  // namespace tensorcraft::python

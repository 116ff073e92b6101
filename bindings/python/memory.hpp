// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/tensor.hpp"
#include "tensorcraft/runtime/safetensors/file.hpp"
#include "tensorcraft/runtime/transfer/engine.hpp"

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <vector>

namespace tensorcraft::python {

namespace nb = nanobind;

// A strong reference that any thread may drop: without the GIL the decrement is queued and runs
// under it later.
std::shared_ptr<const void> share(nb::object object);

// A tc.Tensor keeps one alive. CUDA memory knows its home, the stream it was made on. Work on
// another stream, a foreign owner and an export make it shared. Memory that is not shared goes back
// in the order of its home; shared memory waits for the device first, since not every stream that
// touched it is known.
class Memory {
 public:
  Memory(Tensor tensor, StreamRef home);
  Memory(std::shared_ptr<const void> owner, Device device, StreamRef home)
      : owner_(std::move(owner)), device_(device), home_(home) {}
  // Keeps a resource that others may hold too: its memory is told what works on it.
  Memory(std::shared_ptr<const TensorResource> resource, Device device)
      : owner_(resource), resource_(resource.get()), device_(device), home_(resource->stream()) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void used_on(StreamRef stream) {
    if (!device_.is_cuda()) return host_used_on(stream);
    if (resource_) return resource_used_on(stream);
    if (owner_ || !(stream == home_)) set_shared();
  }
  // Waits for what a GPU does with memory of the host.
  void wait_for_gpu();
  void set_shared() { shared_.store(true, std::memory_order_relaxed); }
  // Made while a graph was recorded: its launches write it, on any stream.
  bool is_recorded() const { return recorded_; }
  // Work enqueued later on `stream` comes after what was done to the memory so far.
  void order_before(StreamRef stream);

  // A transfer that was just submitted reads the memory, or writes it.
  void note_transfer(const Transfer& transfer, bool writes);
  // Before work on `stream`, or the host for memory of the host, reads the memory, or writes it
  // too: it comes after the transfers that it may not overtake. Throws what the one that wrote the
  // memory failed with.
  void settle(StreamRef stream, bool writes) {
    if (in_transfer_.load(std::memory_order_acquire)) [[unlikely]]
      settle_transfers(stream, writes);
  }

 private:
  struct InTransfer {
    Transfer transfer;
    bool writes;
  };
  void settle_transfers(StreamRef stream, bool writes);

  void host_used_on(StreamRef stream);
  void resource_used_on(StreamRef stream);
  Tensor tensor_;
  std::shared_ptr<const void> owner_;
  const TensorResource* resource_ = nullptr;  // that the owner is
  Device device_;
  StreamRef home_;
  const bool recorded_ = false;
  int used_by_ = -1;  // the GPU that may still use memory of the host
  std::atomic<bool> shared_ = false;
  std::atomic<bool> in_transfer_ = false;
  std::vector<InTransfer> transfers_;  // under a lock of all memory
};

// tc.Tensor: a view with a share in its memory. Never changes.
struct PyTensor {
  TensorView view;
  std::shared_ptr<Memory> memory;
};
PyTensor own(Tensor tensor, StreamRef home);
// Orders work of the current stream after what was done to an array so far.
void order_now(const PyTensor& t);

// Waits for all work on a device, without the GIL.
void wait_for(Device device);

}  // namespace tensorcraft::python

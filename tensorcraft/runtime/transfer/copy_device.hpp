// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/allocator.hpp"
#include "tensorcraft/runtime/memory/memory_device.hpp"
#include "tensorcraft/runtime/transfer/request.hpp"

#include <memory>

namespace tensorcraft::transfer {

// An engine asks its device through this interface, so that the same engine runs over a GPU, over
// host memory and over a simulation. Calls throw what the device refuses, and then have done
// nothing.
class CopyDevice {
 public:
  virtual ~CopyDevice() = default;
  // False once nothing can be copied any more.
  virtual bool usable() const noexcept = 0;
  // Is it memory of the host that a lane cannot copy from or to by itself?
  virtual bool is_pageable(const void* host) = 0;
  // Where the staging rings come from: host memory that lanes copy from and to.
  virtual Allocator& staging() = 0;

  // The stream of a direction, of which the engine is the only user.
  virtual StreamRef lane(Direction direction) = 0;
  // A point in streams of one device, to be recorded. Kind value for a stream that is recorded into
  // a graph.
  virtual std::unique_ptr<memory::Mark> make_mark(StreamRef of) = 0;
  // Enqueued on the request's lane; neither side is pageable.
  virtual void copy(const Request& request, void* to, const void* from, size_t bytes) = 0;
  virtual void synchronize(StreamRef lane) = 0;
};

// A CUDA device. Kind value for one that does not exist, unsupported without a driver.
std::unique_ptr<CopyDevice> cuda_copy_device(int device);
// Host memory that plays a device, with a thread for each lane.
std::unique_ptr<CopyDevice> host_copy_device();

}  // namespace tensorcraft::transfer

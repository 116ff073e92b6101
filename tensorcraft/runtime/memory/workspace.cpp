// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/workspace.hpp"

#include "tensorcraft/cuda/graph_memory.hpp"

namespace tensorcraft {

Workspace::Workspace(DType dtype, const Dims& shape, Device device, StreamRef stream)
    : stream_(stream),
      view_(take(bytes_of(dtype, num_elements(shape)), device), dtype, shape, device) {}

void* Workspace::take(size_t bytes, Device device) {
  void* const of_graph = device.is_cuda() ? cuda::allocate_for_graph(bytes, stream_) : nullptr;
  if (of_graph) return of_graph;
  source_ = &allocator(device);
  block_ = source_->allocate(bytes, stream_);
  return block_.data;
}

Workspace::~Workspace() {
  if (block_.data) source_->deallocate(block_, stream_);
}

}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/cuda/stream.hpp"
#include "tensorcraft/runtime/memory/allocator.hpp"

namespace tensorcraft {

// A tensor for what one call's kernels tell each other, enqueued on `stream` while it lives. Not
// cleared; kind out_of_memory if there is no room. In a call that is recorded into a graph a small
// one belongs to the graph, as if the caller had given it; all others come from allocator(device)
// and go back on the same stream.
class Workspace {
 public:
  Workspace(DType dtype, const Dims& shape, Device device, StreamRef stream);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  const TensorView& view() const { return view_; }

 private:
  void* take(size_t bytes, Device device);

  StreamRef stream_;
  Block block_;  // of the allocator, unless a graph owns the memory
  Allocator* source_ = nullptr;
  TensorView view_;
};

}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace tensorcraft {

// Memory of the tensors that are made while a graph is recorded. Allocations in the recording would
// be nodes between its kernels, and the memory would end with a launch. Memory of a pool is there
// before the first launch, and until the pool and all tensors of it are gone. What is freed within
// the recording serves the calls that follow in it.
//
//   GraphPool pool(stream);
//   GraphPool::Recording recording(pool);
//   const Graph graph(stream, work);
//   recording.end();
class GraphPool {
 public:
  // For recordings of `stream`, which is not a default one.
  explicit GraphPool(StreamRef stream);
  // Waits for the device, as launches may still run, if no tensor of the pool is left.
  ~GraphPool();
  GraphPool(const GraphPool&) = delete;
  GraphPool& operator=(const GraphPool&) = delete;

  // From here to its end() allocator(device) serves what this thread asks for on the stream from
  // the pool, and keeps other memory of the device that this thread frees. A thread has one.
  class Recording;
  class State;  // internal

 private:
  std::shared_ptr<State> state_;
};

class GraphPool::Recording {
 public:
  explicit Recording(const GraphPool& pool);  // kind value if the thread has one
  ~Recording() { end(); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  // Frees what was kept, and waits until the pool's memory may be used. Once; the graph is made.
  void end() noexcept;

 private:
  std::shared_ptr<State> state_;  // null: ended
};

namespace graph_pool {

// For allocators of CUDA devices. Memory for this thread on a stream that it records; null if it
// records none, or another one.
void* take(size_t bytes, StreamRef stream);
// Does a pool own the block, or a recording of this thread keep it for later? Else the caller frees
// it.
bool give(void* data, StreamRef stream) noexcept;

}  // namespace graph_pool
}  // namespace tensorcraft

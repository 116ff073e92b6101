// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"

#include <functional>

struct CUgraphExec_st;

namespace tensorcraft {

// Owns work that was recorded from a stream and runs again as one launch. Moves only. The memory
// that the work uses must outlive it.
class Graph {
 public:
  // Records what `work` enqueues on `stream` instead of running it. The stream is not a default
  // one, and `work` waits for nothing. What `work` throws ends the recording and passes.
  Graph(StreamRef stream, const std::function<void()>& work);
  ~Graph();
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;
  // Enqueues all of it on a stream of the same device.
  void launch(StreamRef stream) const;

 private:
  CUgraphExec_st* handle_ = nullptr;
  int device_ = 0;
};

}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/graph.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/launch_watcher.hpp"
#include "tensorcraft/cuda/session.hpp"
#include "tensorcraft/cuda/stream_state.hpp"

#include <utility>

namespace tensorcraft {
namespace {

// A recording that ended, until it can be launched.
struct Recorded {
  explicit Recorded(int device) { cuda::recording_begins(device); }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  ~Recorded() {
    cuda::recording_ends();
    if (graph && cuda::usable()) cuda::driver()->graph_destroy.quiet(graph);
  }
  CUgraph_st* graph = nullptr;
};

}  // namespace

Graph::Graph(StreamRef stream, const std::function<void()>& work) : device_(stream.device()) {
  const DeviceGuard guard(device_);
  const cuda::Driver& driver = cuda::require_driver();
  if (!stream.handle())
    fail(ErrorKind::value, "Graph: the default stream of cuda:", device_,
         " cannot be recorded; give a stream of your own");
  Recorded recorded(device_);
  driver.stream_begin_capture(stream.handle(), cuda::kCaptureThreadLocal);
  try {
    work();
  } catch (...) {
    driver.stream_end_capture.quiet(stream.handle(), &recorded.graph);
    throw;
  }
  driver.stream_end_capture(stream.handle(), &recorded.graph);
  driver.graph_instantiate(&handle_, recorded.graph, 0);
}

Graph::~Graph() {
  if (!handle_) return;
  cuda::quietly_on(device_, [this](const cuda::Driver& d) { d.graph_exec_destroy.quiet(handle_); });
}

Graph::Graph(Graph&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), device_(other.device_) {}

Graph& Graph::operator=(Graph&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(device_, other.device_);
  return *this;
}

void Graph::launch(StreamRef stream) const {
  const DeviceGuard guard(device_);
  const cuda::Driver& driver = cuda::require_driver();
  const auto start = [&] { return driver.graph_launch.status(handle_, stream.handle()); };
  cuda::LaunchWatcher* const watcher = cuda::launch_watcher();
  cuda::check(
      !watcher ? start() : cuda::watched(*watcher, {.what = "graph", .stream = stream}, start),
      driver.graph_launch.name);
}

}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_graph.hpp"

#include "tests/support/fake_driver.hpp"
#include "tests/support/fake_stream.hpp"

#include <atomic>
#include <utility>

// Holds what can be launched of a graph.
struct CUgraphExec_st {
  std::vector<std::function<void(CUstream_st*)>> nodes;
  std::vector<std::shared_ptr<void>> owned;
};

// Until a graph owns it.
struct CUuserObject_st {
  std::shared_ptr<void> object;
};

namespace tensorcraft::test {
namespace {

constexpr int kInvalidContext = 201, kInvalidHandle = 400;

int in_context(const char* name) {
  const int status = FakeDriver::installed()->enter(name);
  return status ? status : FakeDriver::current_context() ? 0 : kInvalidContext;
}

int begin_capture(CUstream_st* stream, int) {
  if (const int status = in_context("cuStreamBeginCapture")) return status;
  if (!stream || stream->graph) return kInvalidHandle;
  static std::atomic<uint64_t> last{0};
  stream->graph = new CUgraph_st{.number = ++last};
  ++FakeDriver::installed()->graphs;
  return 0;
}

int end_capture(CUstream_st* stream, CUgraph_st** graph) {
  if (const int status = in_context("cuStreamEndCapture")) return status;
  *graph = std::exchange(stream->graph, nullptr);
  return 0;
}

int instantiate(CUgraphExec_st** exec, CUgraph_st* graph, uint64_t) {
  if (const int status = in_context("cuGraphInstantiateWithFlags")) return status;
  *exec = new CUgraphExec_st{graph->nodes, graph->owned};
  ++FakeDriver::installed()->graphs;
  return 0;
}

int capture_info(CUstream_st* stream, int* state, uint64_t* number, CUgraph_st** graph,
                 const CUgraphNode_st* const**, size_t*) {
  if (const int status = in_context("cuStreamGetCaptureInfo")) return status;
  *graph = stream ? stream->graph : nullptr;
  *state = *graph != nullptr;
  if (number && *graph) *number = (*graph)->number;
  return 0;
}

int create_object(CUuserObject_st** object, void* data, void (*destroy)(void*), uint32_t,
                  uint32_t) {
  if (const int status = in_context("cuUserObjectCreate")) return status;
  *object = new CUuserObject_st{std::shared_ptr<void>(data, destroy)};
  return 0;
}

int release_object(CUuserObject_st* object, uint32_t) {
  if (const int status = in_context("cuUserObjectRelease")) return status;
  delete object;
  return 0;
}

// Moves the one reference there is.
int retain_object(CUgraph_st* graph, CUuserObject_st* object, uint32_t, uint32_t) {
  if (const int status = in_context("cuGraphRetainUserObject")) return status;
  graph->owned.push_back(object->object);
  delete object;
  return 0;
}

int launch(CUgraphExec_st* exec, CUstream_st* stream) {
  if (const int status = in_context("cuGraphLaunch")) return status;
  const std::lock_guard lock(FakeDriver::installed()->device_mutex);
  for (const auto& node : exec->nodes) node(stream);
  return 0;
}

template <class Handle>
int destroy(const char* name, Handle* handle) {
  if (const int status = in_context(name)) return status;
  delete handle;
  --FakeDriver::installed()->graphs;
  return 0;
}

}  // namespace

void fill_graph_calls(cuda::Driver& table) {
  table.stream_begin_capture.function = begin_capture;
  table.stream_end_capture.function = end_capture;
  table.stream_get_capture_info.function = capture_info;
  table.thread_exchange_stream_capture_mode.function = [](int*) {
    return in_context("cuThreadExchangeStreamCaptureMode");
  };
  table.user_object_create.function = create_object;
  table.user_object_release.function = release_object;
  table.graph_retain_user_object.function = retain_object;
  table.graph_instantiate.function = instantiate;
  table.graph_launch.function = launch;
  table.graph_exec_destroy.function = [](CUgraphExec_st* exec) {
    return destroy("cuGraphExecDestroy", exec);
  };
  table.graph_destroy.function = [](CUgraph_st* graph) { return destroy("cuGraphDestroy", graph); };
}

}  // namespace tensorcraft::test

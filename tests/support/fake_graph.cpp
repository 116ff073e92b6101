// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_graph.hpp"

#include "tests/support/fake_driver.hpp"
#include "tests/support/fake_stream.hpp"

#include <utility>

// What can be launched of a graph.
struct CUgraphExec_st {
  std::vector<std::function<void(CUstream_st*)>> nodes;
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
  stream->graph = new CUgraph_st;
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
  *exec = new CUgraphExec_st{graph->nodes};
  ++FakeDriver::installed()->graphs;
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
  table.graph_instantiate.function = instantiate;
  table.graph_launch.function = launch;
  table.graph_exec_destroy.function = [](CUgraphExec_st* exec) {
    return destroy("cuGraphExecDestroy", exec);
  };
  table.graph_destroy.function = [](CUgraph_st* graph) { return destroy("cuGraphDestroy", graph); };
}

}  // namespace tensorcraft::test

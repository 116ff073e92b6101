// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "memory.hpp"
#include "tensorcraft/core/device.hpp"
#include "tensorcraft/cuda/stream.hpp"

#include <nanobind/nanobind.h>

#include <memory>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace tensorcraft::python {

// Records this thread's calls, and holds what the graph keeps of them.
class GraphRecording {
 public:
  explicit GraphRecording(StreamRef stream) : stream_(stream) {}
  ~GraphRecording();  // waits for the launches that still use what it kept
  GraphRecording(const GraphRecording&) = delete;
  GraphRecording& operator=(const GraphRecording&) = delete;
  // The thread's own; null if its calls run.
  static GraphRecording* active();
  StreamRef stream() const { return stream_; }

  // Keeps what a call was given alive as long as the graph: memory of ours, or another's array.
  void keep(const std::shared_ptr<Memory>& memory, nb::handle object);
  // Takes what must wait for the device before it goes, which a recording may not.
  void free_later(std::shared_ptr<void> owned) { late_.push_back(std::move(owned)); }
  // The recording is over: what was to go goes.
  void end() noexcept;

 private:
  StreamRef stream_;
  std::unordered_set<std::shared_ptr<Memory>> memory_;
  std::vector<nb::object> objects_;
  std::unordered_set<PyObject*> known_;
  std::vector<std::shared_ptr<void>> late_;
};

// While this thread records: refuses a call that would run now and not with the graph, of kind
// value, and one whose result is wanted on the host, of kind unsupported.
void require_recorded(std::string_view op, Device device, StreamRef stream, bool result_on_host);
// A call on `stream` used the memory, or another package's object: a graph that is recorded keeps
// it.
void note_use(const std::shared_ptr<Memory>& memory, nb::handle object, StreamRef stream);
// Refuses what waits for the GPU while this thread records a graph: kind unsupported.
void refuse_while_recording(std::string_view what);

// Registers Graph.
void register_graph(nb::module_& m);

}  // namespace tensorcraft::python

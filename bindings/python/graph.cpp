// SPDX-License-Identifier: Apache-2.0
#include "graph.hpp"

#include "arguments.hpp"
#include "gil.hpp"
#include "stream.hpp"
#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/graph.hpp"

#include <nanobind/stl/string.h>

#include <optional>
#include <utility>

namespace tensorcraft::python {
namespace {

using namespace nb::literals;

thread_local GraphRecording* active_recording = nullptr;

constexpr const char* kDoc =
    "Calls on a GPU that are recorded once and run again as one launch, which costs the host a few "
    "microseconds, whatever it holds.\n\n"
    "Graph(work, stream=None) calls the function `work` once, without arguments. What it calls on "
    "the GPU is recorded and does not run. Call `work` yourself before: it compiles kernels, "
    "which a recording cannot.\n\n"
    "    step()                 # compiles, and runs\n"
    "    graph = tc.Graph(step)\n"
    "    graph.launch()         # runs\n\n"
    "A launch reads and writes the memory of the recording: write new values into the arrays that "
    "`work` reads (`out=`, `x[...] = y`), and read what it returned as `graph.result`. All else is "
    "frozen: shapes, dtypes, the choice of kernels, numbers among the arguments, and what Python "
    "decided. The graph keeps the arrays alive that its calls were given, and the memory of those "
    "that they made; `graph.result` is written anew by each launch.\n\n"
    "`stream` is where the recording takes place: a tc.Stream, an integer handle or an object with "
    "__cuda_stream__, and not a default stream; without it, one of its own on the default device. "
    "It is the current stream while `work` runs. Launches go to any stream of that device.\n\n"
    "Kind unsupported (NotImplementedError): there is no GPU; `work` reads values on the host, "
    "moves arrays between devices or waits; a kernel is not compiled yet. Kind value (ValueError): "
    "a default stream; a call on another device or stream, which would run now. An error ends the "
    "recording and passes. `tc.trace()` does not see calls that are recorded.";

class ActiveRecording {
 public:
  explicit ActiveRecording(GraphRecording& recording) { active_recording = &recording; }
  ~ActiveRecording() { active_recording = nullptr; }
  ActiveRecording(const ActiveRecording&) = delete;
  ActiveRecording& operator=(const ActiveRecording&) = delete;
};

// A stream of its own if none is given.
nb::object stream_object(nb::handle given) {
  if (!given.is_none()) return nb::borrow(given);
  const Device device = default_device();
  if (!device.is_cuda())
    fail(ErrorKind::unsupported, "Graph: it records calls on a GPU, and the default device is ",
         device, "; call the function itself, or give a tc.Stream of a CUDA device");
  return nb::type<PyStream>()(to_string(device));
}

StreamRef stream_to_record(nb::handle object) {
  if (PyStream* s = nullptr; nb::try_cast(object, s, false) && s) return s->stream;
  const Device device = default_device();
  return to_stream(object, device.is_cuda() ? device.index : 0);
}

}  // namespace

// tc.Graph.
class GraphObject {
 public:
  GraphObject(const nb::callable& work, nb::handle given) {
    refuse_while_recording("Graph: another recording");
    if (config().gpu_allocator != "pool")
      fail(ErrorKind::unsupported,
           "Graph: the driver's allocator (setting gpu_allocator) takes a "
           "recording's arrays back when it ends; set gpu_allocator to pool");
    nb::object stream = stream_object(given);
    const StreamRef ref = stream_to_record(stream);
    parts_ = std::make_shared<Parts>(ref, std::move(stream));
    {
      const ActiveRecording active(parts_->recording);
      const CurrentStream current(ref);
      parts_->graph.emplace(ref, [&] { parts_->result = work(); });
    }
    parts_->recording.end();
  }
  // A graph may go while another is recorded, as garbage of Python.
  ~GraphObject() {
    if (GraphRecording* const other = GraphRecording::active())
      other->free_later(std::move(parts_));
  }
  GraphObject(const GraphObject&) = delete;
  GraphObject& operator=(const GraphObject&) = delete;

  void launch(nb::handle given) const {
    refuse_while_recording("launch: a graph in a graph");
    const int device = parts_->recorded.device();
    const StreamRef stream = given.is_none() ? current_stream(device) : to_stream(given, device);
    const WithoutGil released;
    parts_->graph->launch(stream);
  }
  nb::object result() const { return parts_->result; }
  std::string device() const { return to_string(Device::cuda(parts_->recorded.device())); }

 private:
  // They go from the last to the first: launches that still run need the first ones.
  struct Parts {
    Parts(StreamRef ref, nb::object object)
        : recorded(ref), stream(std::move(object)), recording(ref) {}
    StreamRef recorded;
    nb::object stream;
    GraphRecording recording;
    nb::object result;
    std::optional<Graph> graph;
  };
  std::shared_ptr<Parts> parts_;
};

GraphRecording* GraphRecording::active() { return active_recording; }

GraphRecording::~GraphRecording() { end(); }

void GraphRecording::end() noexcept {
  if (memory_.empty() && objects_.empty() && late_.empty()) return;
  try {
    wait_for(Device::cuda(stream_.device()));
  } catch (const std::exception&) {
    // A device that cannot be waited for runs nothing more.
  }
  late_.clear();
}

void require_recorded(std::string_view op, Device device, StreamRef stream, bool result_on_host) {
  if (!active_recording) return;
  const StreamRef recorded = active_recording->stream();
  const Device own = Device::cuda(recorded.device());
  if (device != own)
    fail(ErrorKind::value, op, ": a graph of ", own, " is being recorded, and this call is on ",
         device, ": it would run now and not with the graph; make it before the recording");
  if (!(stream == recorded) && !stream.is_capturing())
    fail(ErrorKind::value, op,
         ": a graph is being recorded, and this call goes to another stream: it would run now and "
         "not with the graph; leave stream out, and make the graph's stream the current one of the "
         "arrays' package");
  if (result_on_host) refuse_while_recording(join(op, ": a result on the host"));
}

void note_use(const std::shared_ptr<Memory>& memory, nb::handle object, StreamRef stream) {
  if (memory) memory->used_on(stream);
  if (active_recording) active_recording->keep(memory, object);
}

void GraphRecording::keep(const std::shared_ptr<Memory>& memory, nb::handle object) {
  if (!memory) {
    if (known_.insert(object.ptr()).second) objects_.push_back(nb::borrow(object));
  } else if (!memory->is_recorded()) {
    memory->set_shared();  // launches go to any stream
    memory_.insert(memory);
  }
}

void refuse_while_recording(std::string_view what) {
  if (active_recording)
    fail(ErrorKind::unsupported, what,
         " is not possible while this thread records a graph: nothing runs before the launch; do "
         "it before the recording, or after a launch");
}

void register_graph(nb::module_& m) {
  nb::class_<GraphObject> graphs(m, "Graph", kDoc);
  graphs
      .def(
          "__init__",
          [](GraphObject* g, const nb::callable& work, nb::handle stream) {
            new (g) GraphObject(work, stream);
          },
          "work"_a, "stream"_a = nb::none())
      .def("launch", &GraphObject::launch, "stream"_a = nb::none(),
           "Enqueues all that was recorded, on the current stream if none is given, and returns.")
      .def_prop_ro("result", &GraphObject::result,
                   "What the function returned; each launch writes its arrays anew.")
      .def_prop_ro("device", &GraphObject::device, "The device, as text.");
  refuse_others(graphs, "__init__",
                "a tc.Graph takes a function without arguments, and perhaps a stream");
  refuse_others(graphs, "launch", "takes one argument, stream");
}

}  // namespace tensorcraft::python

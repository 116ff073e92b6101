// SPDX-License-Identifier: Apache-2.0
#include "stream.hpp"

#include "arguments.hpp"
#include "gil.hpp"
#include "graph.hpp"
#include "tensorcraft/core/error.hpp"

#include <nanobind/stl/string.h>

#include <mutex>
#include <utility>
#include <vector>

namespace tensorcraft::python {
namespace {

using namespace nb::literals;

struct Shelf {
  std::mutex mutex;
  std::vector<Stream> idle;
};
Shelf& shelf() {
  static auto* one = new Shelf;  // leaked on purpose: streams are put back during exit
  return *one;
}

Stream take_stream(int device) {
  const std::lock_guard lock(shelf().mutex);
  for (Stream& s : shelf().idle) {
    if (s.ref().device() != device) continue;
    std::swap(s, shelf().idle.back());
    Stream found = std::move(shelf().idle.back());
    shelf().idle.pop_back();
    return found;
  }
  return Stream(device);
}

int cuda_index(nb::handle device, const char* what) {
  const Device d = to_device(device);
  if (!d.is_cuda())
    fail(ErrorKind::value, what,
         ": Tensor must be on CUDA device: streams and events belong to a "
         "CUDA device, got ",
         d);
  return d.index;
}

uintptr_t to_integer(StreamRef stream) { return reinterpret_cast<uintptr_t>(stream.handle()); }

}  // namespace

PyStream::PyStream(int device) : stream(take_stream(device)) {}

PyStream::~PyStream() {
  const std::lock_guard lock(shelf().mutex);
  shelf().idle.push_back(std::move(stream));
}

void register_stream(nb::module_& m) {
  nb::class_<PyStream> streams(
      m, "Stream", "An order of work on one CUDA device; `with stream:` makes it current.");
  streams
      .def(
          "__init__",
          [](PyStream* s, nb::handle device) { new (s) PyStream(cuda_index(device, "Stream")); },
          "device"_a.none() = "cuda")
      .def(
          "synchronize",
          [](const PyStream& s) {
            refuse_while_recording("synchronize");
            s.stream.ref().synchronize();
          },
          nb::call_guard<WithoutGil>(), "Waits for all work enqueued so far.")
      .def(
          "__cuda_stream__",
          [](const PyStream& s) { return nb::make_tuple(0, to_integer(s.stream)); },
          "The handle, in the form other packages ask for it.")
      .def_prop_ro(
          "handle", [](const PyStream& s) { return to_integer(s.stream); },
          "The driver's handle as an integer.")
      .def_prop_ro(
          "device",
          [](const PyStream& s) { return to_string(Device::cuda(s.stream.ref().device())); },
          "The device, as text.");
  refuse_others(streams, "__init__", "a tc.Stream takes a device, such as \"cuda:0\"");
  for (const char* name : {"synchronize", "__cuda_stream__"})
    refuse_others(streams, name, "takes no arguments");
  m.def(
      "current_stream", [](int device) { return to_integer(current_stream(device)); },
      "device"_a = 0, "The handle of the stream this thread works on.");
  m.def(
      "set_current_stream",
      [](uintptr_t handle, int device) {
        set_current_stream(StreamRef(reinterpret_cast<CUstream_st*>(handle), device));
      },
      "handle"_a, "device"_a, "Makes a stream current for this thread.");
  nb::class_<Event> events(m, "Event", "A point in a stream.");
  events
      .def(
          "__init__",
          [](Event* e, nb::handle device, bool timing) {
            new (e) Event(cuda_index(device, "Event"), timing);
          },
          "device"_a.none() = "cuda", "timing"_a = false)
      .def(
          "record", [](Event& e, const PyStream& s) { e.record(s.stream); }, "stream"_a,
          "Moves the event to the end of a stream.")
      .def(
          "wait", [](const Event& e, const PyStream& s) { e.wait(s.stream); }, "stream"_a,
          "Makes later work of a stream start after the event.")
      .def(
          "synchronize",
          [](const Event& e) {
            refuse_while_recording("synchronize");
            e.synchronize();
          },
          nb::call_guard<WithoutGil>(), "Waits for the event.")
      .def_prop_ro("done", &Event::done, "Has the event passed?")
      .def_static("elapsed_ms", &Event::elapsed_ms, "begin"_a, "end"_a,
                  nb::call_guard<WithoutGil>(),
                  "Milliseconds between two events made with timing=True.");
  refuse_others(events, "__init__", "a tc.Event takes a device and timing, True or False");
  for (const char* name : {"record", "wait"}) refuse_others(events, name, "takes one tc.Stream");
  refuse_others(events, "synchronize", "takes no arguments");
  events.def_static("elapsed_ms", [](const nb::args&, const nb::kwargs&) -> float {
    fail(ErrorKind::type, "elapsed_ms: takes two events made with timing=True");
  });
}

}  // namespace tensorcraft::python

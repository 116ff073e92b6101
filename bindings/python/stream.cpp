// SPDX-License-Identifier: Apache-2.0
#include "stream.hpp"

#include "arguments.hpp"
#include "gil.hpp"
#include "graph.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/cuda/stream_priority.hpp"

#include <nanobind/stl/string.h>

#include <mutex>
#include <utility>
#include <vector>

namespace tensorcraft::python {
namespace {

using namespace nb::literals;

struct Shelf {
  std::mutex mutex;
  std::vector<std::pair<int, Stream>> idle;  // by priority
};
Shelf& shelf() {
  static constinit FirstMade<Shelf> one;
  return *one;
}

Stream take_stream(int device, int priority) {
  const std::lock_guard lock(shelf().mutex);
  for (auto& one : shelf().idle) {
    if (one.second.ref().device() != device || one.first != priority) continue;
    std::swap(one, shelf().idle.back());
    Stream found = std::move(shelf().idle.back().second);
    shelf().idle.pop_back();
    return found;
  }
  return cuda::make_stream(device, priority);
}

int cuda_index(nb::handle device) {
  const Device d = to_device(device);
  if (!d.is_cuda())
    fail(ErrorKind::value,
         "Stream: Tensor must be on CUDA device: streams belong to a CUDA device, got ", d);
  return d.index;
}

uintptr_t to_integer(StreamRef stream) { return reinterpret_cast<uintptr_t>(stream.handle()); }

}  // namespace

PyStream::PyStream(int device, int given) : priority(given), stream(take_stream(device, given)) {}

PyStream::~PyStream() {
  const std::lock_guard lock(shelf().mutex);
  shelf().idle.emplace_back(priority, std::move(stream));
}

void register_stream(nb::module_& m) {
  nb::class_<PyStream> streams(
      m, "Stream", "An order of work on one CUDA device; `with stream:` makes it current.");
  streams
      .def(
          "__init__",
          [](PyStream* s, nb::handle device, nb::handle priority) {
            const int64_t wanted = to_int64(priority, "priority");
            if (wanted < 0 || wanted > 100)
              fail(ErrorKind::value,
                   "Stream: priority must be 0, that of other streams, to 100, got ", wanted);
            new (s) PyStream(cuda_index(device), int(wanted));
          },
          "device"_a.none() = "cuda", "priority"_a.none() = 0)
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
      .def_ro("priority", &PyStream::priority,
              "Work that waits goes before that of streams with a lower one, as far as the device "
              "tells them apart.")
      .def_prop_ro(
          "device",
          [](const PyStream& s) { return to_string(Device::cuda(s.stream.ref().device())); },
          "The device, as text.");
  refuse_others(streams, "__init__",
                "a tc.Stream takes a device, such as \"cuda:0\", and perhaps a priority");
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
}

}  // namespace tensorcraft::python

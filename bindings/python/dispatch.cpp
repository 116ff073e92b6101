// SPDX-License-Identifier: Apache-2.0
#include "dispatch.hpp"

#include "arguments.hpp"
#include "gil.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/launch_watcher.hpp"
#include "tensorcraft/runtime/dispatch/dispatch.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>

namespace tensorcraft::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// A stream as operators take it; None is the current one of the default device.
StreamRef stream_of_argument(nb::handle stream) {
  const Device device = default_device();
  if (!stream.is_none()) return to_stream(stream, device.is_cuda() ? device.index : 0);
  if (!device.is_cuda())
    fail(ErrorKind::unsupported, "dispatch: launches of ", device,
         " end before the call returns; a limit needs a GPU");
  return current_stream(device.index);
}

nb::tuple dims(const Dim3& d) { return nb::make_tuple(d.x, d.y, d.z); }

void set_limit(nb::handle launches, nb::handle stream) {
  const int64_t limit = to_int64(launches, "launches");
  const StreamRef on = stream_of_argument(stream);
  dispatch::set_limit(on, int(std::clamp<int64_t>(limit, -1, std::numeric_limits<int>::max())));
}

nb::tuple stats() {
  dispatch::Counts now;
  {
    const WithoutGil released;  // it asks the driver
    now = dispatch::counts();
  }
  return nb::make_tuple(now.launched, now.completed, now.failed, now.cancelled, now.in_flight);
}

nb::list recent(nb::handle count) {
  const int64_t most = to_int64(count, "count");
  if (most < 0) fail(ErrorKind::value, "dispatch: count must be at least 0, got ", most);
  nb::list rows;
  for (const dispatch::Launch& one : dispatch::recent(size_t(most)))
    rows.append(nb::make_tuple(
        std::string(one.name.data()), cuda::name_of_kernel(one.kernel), to_string(one.device),
        reinterpret_cast<uintptr_t>(one.stream), one.task, dims(one.grid), dims(one.block),
        std::string(to_string(one.outcome)), std::chrono::duration<double>(one.at).count()));
  return rows;
}

}  // namespace

void register_dispatch(nb::module_& m) {
  m.def("dispatch_stats", &stats, "What tc.dispatch.stats calls.");
  m.def("dispatch_set_limit", &set_limit, "launches"_a.none(), "stream"_a.none(),
        "What tc.dispatch.set_limit calls.");
  m.def(
      "dispatch_limit", [](nb::handle s) { return dispatch::limit(stream_of_argument(s)); },
      "stream"_a.none(), "What tc.dispatch.limit calls.");
  m.def("dispatch_recent", &recent, "count"_a.none(), "What tc.dispatch.recent calls.");
  m.def("dispatch_record", &dispatch::record_launches, "enabled"_a,
        "What tc.dispatch.record calls.");
  refuse_others(m, "dispatch_record", "record takes True or False");
}

}  // namespace tensorcraft::python

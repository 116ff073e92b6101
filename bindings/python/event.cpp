// SPDX-License-Identifier: Apache-2.0
#include "event.hpp"

#include "arguments.hpp"
#include "arrays.hpp"
#include "gil.hpp"
#include "graph.hpp"
#include "stream.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/nearest.hpp"
#include "tensorcraft/cuda/wait_value.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string_view>

namespace tensorcraft::python {
namespace {

using namespace nb::literals;

int32_t to_value(nb::handle object) {
  const int64_t value = to_int64(object, "value");
  if (value < INT32_MIN || value > INT32_MAX)
    fail(ErrorKind::value, "value must be in [-2**31, 2**31), got ", value);
  return int32_t(value);
}

Event::Timeout to_timeout(nb::handle seconds) {
  if (seconds.is_none()) return {};
  const double s = to_double(seconds, "timeout");
  if (!(s >= 0)) fail(ErrorKind::value, "timeout must be seconds from 0 on or None, got ", s);
  constexpr double kMost = 1e9;  // 30 years
  return std::chrono::nanoseconds(int64_t(std::min(s, kMost) * 1e9));
}

// The stream that is given, or the thread's current one.
StreamRef stream_for(const Event& e, nb::handle stream) {
  const Device device = e.device();
  if (!device.is_cuda()) return {};
  return stream.is_none() ? current_stream(device.index) : to_stream(stream, device.index);
}

// A graph that records work on the event keeps it.
template <class F>
void enqueue(nb::handle event, nb::handle stream, F&& f) {
  auto& e = nb::cast<Event&>(event);
  const StreamRef on = stream_for(e, stream);
  {
    const WithoutGil released;
    f(e, on);
  }
  if (e.device().is_cuda()) note_use(nullptr, event, on);
}

void register_values(nb::class_<Event>& events) {
  events
      .def(
          "record",
          [](nb::handle self, nb::handle value, nb::handle stream) {
            const int32_t to = to_value(value);
            enqueue(self, stream, [&](Event& e, StreamRef on) { e.record(to, on); });
          },
          "value"_a = 1, nb::kw_only(), "stream"_a.none() = nb::none(),
          "Makes the count of the event `value` once a stream has done its work so far.")
      .def(
          "wait",
          [](nb::handle self, nb::handle value, nb::handle stream, nb::handle timeout) {
            const int32_t least = to_value(value);
            const Event::Timeout limit = to_timeout(timeout);
            enqueue(self, stream, [&](Event& e, StreamRef on) { e.wait(least, on, limit); });
          },
          "value"_a = 1, nb::kw_only(), "stream"_a.none() = nb::none(),
          "timeout"_a.none() = nb::none(),
          "Makes later work of a stream start once the count is at least `value`.")
      .def(
          "synchronize",
          [](const Event& e, nb::handle value, nb::handle timeout) {
            refuse_while_recording("synchronize");
            const int32_t least = to_value(value);
            const Event::Timeout limit = to_timeout(timeout);
            const WithoutGil released;
            e.synchronize(least, limit);
          },
          "value"_a, nb::kw_only(), "timeout"_a.none() = nb::none(),
          "Waits until the count is at least `value`.")
      .def(
          "set", [](Event& e, nb::handle value) { e.set(to_value(value)); }, "value"_a.none() = 1,
          "Makes the count `value` at once.")
      .def(
          "reset",
          [](nb::handle self, nb::handle stream) {
            enqueue(self, stream, [](Event& e, StreamRef on) { e.record(0, on); });
          },
          nb::kw_only(), "stream"_a.none() = nb::none(),
          "Makes the count 0 in the order of a stream.")
      .def_prop_ro("value", &Event::value, "The count now.");
}

// The stream of a flag; none: this thread waits or writes.
std::optional<StreamRef> stream_of_flag(const ArrayArgument& flag, nb::handle stream) {
  const Device device = flag.view.device();
  if (stream.is_none())
    return device.is_cuda() ? std::optional(stream_of(flag, device.index)) : std::nullopt;
  return to_stream(stream, device.is_cuda() ? device.index : 0);
}

WaitCondition to_condition(nb::handle object) {
  constexpr std::array<std::string_view, 4> kNames = {"at_least", "equal", "and_bits", "nor_bits"};
  const std::string_view name = to_text(object, "condition");
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end())
    fail(ErrorKind::value,
         "stream_wait_value: condition must be at_least, equal, and_bits or "
         "nor_bits, got \"",
         name, '"', did_you_mean(name, kNames));
  return WaitCondition(found - kNames.begin());
}

ArrayArgument to_flag(nb::handle flag, const char* op, nb::handle stream) {
  const ArrayArgument a = to_array(flag, op, "flag", stream, DType::int32);
  if (a.is_number() || !a.object.is_valid())
    fail(ErrorKind::type, op, ": flag must be an array, which somebody writes, got ",
         class_name(flag));
  return a;
}

void wait_value(nb::handle flag, nb::handle value, nb::handle condition, nb::handle stream) {
  const ArrayArgument a = to_flag(flag, "stream_wait_value", stream);
  const WaitValueOptions options{to_condition(condition), stream_of_flag(a, stream)};
  const int32_t until = to_value(value);
  {
    const WithoutGil released;
    stream_wait_value(a.view, until, options);
  }
  if (options.stream) note_use(a.memory, a.object, *options.stream);
}

void write_value(nb::handle flag, nb::handle value, nb::handle stream) {
  const ArrayArgument a = to_flag(flag, "stream_write_value", stream);
  const std::optional<StreamRef> on = stream_of_flag(a, stream);
  stream_write_value(a.view, to_value(value), on);
  if (on) note_use(a.memory, a.object, *on);
}

}  // namespace

void register_event(nb::module_& m) {
  nb::class_<Event> events(
      m, "Event",
      "A point in a stream, and a count that streams and the host raise and wait for: a wait for a "
      "value may be enqueued before the value is recorded. On \"cpu\" and \"simt\" there is the "
      "count alone, and the calling thread waits.");
  events
      .def(
          "__init__",
          [](Event* e, nb::handle device, bool timing) {
            const Device on = to_device(device);
            on.is_cuda() ? new (e) Event(on.index, timing) : new (e) Event(on);
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
  register_values(events);
  refuse_others(events, "__init__", "a tc.Event takes a device and timing, True or False");
  for (const char* name : {"record", "wait"})
    refuse_others(events, name, "takes one tc.Stream, or a value, stream= and, to wait, timeout=");
  refuse_others(events, "synchronize", "takes nothing, or a value and timeout=");
  refuse_others(events, "set", "takes one argument, value");
  refuse_others(events, "reset", "takes one argument, stream, by name");
  events.def_static("elapsed_ms", [](const nb::args&, const nb::kwargs&) -> float {
    fail(ErrorKind::type, "elapsed_ms: takes two events made with timing=True");
  });
  m.def("stream_wait_value", &wait_value, "flag"_a.none(), "value"_a.none(), nb::kw_only(),
        "condition"_a.none() = "at_least", "stream"_a.none() = nb::none(),
        "Makes later work of a stream start once flag[0] meets the condition, at_least, equal, "
        "and_bits or nor_bits with `value`, whoever writes it and whenever.");
  m.def("stream_write_value", &write_value, "flag"_a.none(), "value"_a.none(), nb::kw_only(),
        "stream"_a.none() = nb::none(),
        "Writes flag[0] once a stream has done its work so far; at once if the flag is on the host "
        "and no stream is given.");
  refuse_others(m, "stream_wait_value", "takes a flag and a value, and condition= and stream=");
  refuse_others(m, "stream_write_value", "takes a flag and a value, and stream=");
}

}  // namespace tensorcraft::python

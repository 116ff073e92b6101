// SPDX-License-Identifier: Apache-2.0
#include "tune.hpp"

#include "bound_call.hpp"
#include "gil.hpp"
#include "graph.hpp"

#include "tensorcraft/diagnose/tune.hpp"

#include <nanobind/stl/string.h>

#include <deque>
#include <string>
#include <vector>

namespace tensorcraft::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

nb::dict to_dict(const diagnose::TuneReport& report) {
  const op::TunedRow& row = report.row;
  nb::dict d;
  d["op"] = row.key.op;
  d["device"] = row.key.device;
  d["call"] = row.key.call;
  d["variant"] = row.entry.variant;
  d["config"] = row.entry.config;
  d["us"] = row.entry.us;
  d["model_variant"] = report.model.variant;
  d["model_config"] = report.model.config;
  d["model_us"] = row.entry.model_us;
  d["tflops"] = report.tflops;
  d["end"] = report.end;
  nb::list trials;
  for (const diagnose::TuningIteration& one : report.iterations)
    trials.append(nb::make_tuple(one.candidate.variant, one.candidate.config, one.us, one.error));
  d["trials"] = trials;
  return d;
}

// Memory for every result; one that is an input in place is written there.
std::vector<TensorView> make_results(const Call& call, const op::Operator& op,
                                     const op::Arguments& arguments, std::deque<Tensor>& memory) {
  std::vector<TensorView> views;
  for (const op::OutputSpec& spec : op.infer(arguments)) {
    if (spec.in_place_of >= 0) {
      views.push_back(call.updated(spec.in_place_of).view);
      continue;
    }
    memory.emplace_back(spec.dtype, spec.shape, call.device(), call.stream());
    views.push_back(memory.back().view());
  }
  return views;
}

nb::dict tune(size_t index, nb::tuple inputs, nb::tuple options, nb::handle stream,
              nb::handle device, double seconds, bool every, bool again) {
  const op::Operator& op = operator_at(index);
  const Call call(op, inputs, options, stream, device);
  if (call.device().is_cuda()) refuse_while_recording("tune");
  const op::Arguments arguments = call.arguments({});
  std::deque<Tensor> memory;
  const std::vector<TensorView> outputs = make_results(call, op, arguments, memory);
  diagnose::TuneSettings settings;
  settings.rules.seconds = seconds;
  settings.rules.measures_all = every;
  settings.again = again;
  diagnose::TuneReport report;
  const diagnose::TuningArrays arrays{outputs, arguments.inputs, arguments.options};
  without_gil([&] { report = diagnose::tune(op, {&arrays, 1}, call.stream(), settings); },
              [&] { call.mark_used(); });
  return to_dict(report);
}

}  // namespace

void register_tune(nb::module_& m) {
  m.def("tune", &tune, "index"_a, "inputs"_a, "options"_a, "stream"_a.none(), "device"_a.none(),
        "seconds"_a, "every"_a, "again"_a, "What tc.tune calls.");
}

}  // namespace tensorcraft::python

// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include "arguments.hpp"
#include "arrays.hpp"
#include "bound_call.hpp"
#include "explain.hpp"
#include "gil.hpp"
#include "graph.hpp"
#include "packed.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/all.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tensorcraft::python {
namespace {

nb::object frameworks(const char* name) {
  static const nb::module_* module = nullptr;
  return kept(module, [] { return nb::module_::import_("tensorcraft._frameworks"); }).attr(name);
}

// One output: the memory that the operator writes, and how it becomes what the caller gets.
struct Output {
  TensorView view;
  nb::object object;                 // null: made from `memory` after the run
  std::shared_ptr<Memory> memory;    // of ours
  std::optional<TensorView> host{};  // copied to after the run
  bool is_given = false;             // by the caller
};

Output new_output(const Call& call, const op::OutputSpec& spec, bool as_tensor) {
  if (spec.in_place_of >= 0) {
    const ArrayArgument a = settled_to_write(call.updated(spec.in_place_of), call.stream());
    return {a.view, nb::borrow(a.object), a.memory};
  }
  const ArrayArgument& like = call.leader();
  if (like.is_host_array()) {
    NumpyArray array = empty_on_host(spec.dtype, spec.shape, as_tensor);
    if (!call.device().is_cuda())
      return {on_device(array.view, call.device()), std::move(array.object), nullptr};
    PyTensor t = own(Tensor(spec.dtype, spec.shape, call.device(), call.stream()), call.stream());
    return {t.view, std::move(array.object), std::move(t.memory), array.view};
  }
  if (like.framework == Framework::exchange) {
    NumpyArray array = empty_exchange(*like.api, spec.dtype, spec.shape, call.device());
    return {array.view, std::move(array.object), nullptr};
  }
  PyTensor t = own(Tensor(spec.dtype, spec.shape, call.device(), call.stream()), call.stream());
  if (call.stream_may_end()) t.memory->set_shared();
  return {t.view, nb::object(), std::move(t.memory)};
}

// The caller's array. A NumPy array is computed on the device of the call and copied back.
Output given_output(const Call& call, nb::handle out) {
  const ArrayArgument a =
      settled_to_write(to_array(out, call.name(), "out", nb::none()), call.stream());
  if (a.is_number() || !a.object.is_valid())
    fail(ErrorKind::type, call.name(), ": out must be an array that can be written to, got ",
         class_name(out));
  if (!a.is_host_array()) return {a.view, nb::borrow(out), a.memory};
  if (!call.device().is_cuda())
    return {on_device(a.view, call.device()), nb::borrow(out), a.memory};
  if (!call.leader().is_host_array())
    fail(ErrorKind::value, call.name(), ": out is a NumPy array and the result is on ",
         call.device(), "; give an array of that device");
  if (a.view.read_only())
    fail(ErrorKind::buffer, call.name(), ": out: the tensor is read-only; give writable memory");
  if (!a.view.is_contiguous())
    fail(ErrorKind::value, call.name(),
         ": out: a NumPy array for a result of a GPU must be contiguous");
  PyTensor t =
      own(Tensor(a.view.dtype(), a.view.shape(), call.device(), call.stream()), call.stream());
  return {t.view, nb::borrow(out), std::move(t.memory), a.view};
}

// out= is None, the first result's array, or a tuple of one entry for each result; what it leaves
// out is made, all of one kind: tensors of ours if NumPy lacks the dtype of a result. Without specs
// there is one result, and it is given.
std::vector<Output> make_outputs(const Call& call, nb::handle out,
                                 const std::vector<op::OutputSpec>& specs) {
  const bool is_tuple = PyTuple_Check(out.ptr());
  if (is_tuple && nb::len(out) != specs.size()) {
    std::string names;
    for (const op::OutputSpec& s : specs) names.append(names.empty() ? "" : ", ").append(s.name);
    fail(ErrorKind::value, call.name(), ": out: a tuple of ", nb::len(out), " was given for ",
         specs.size(), specs.size() == 1 ? " result" : " results", " (", names,
         "); give an array or None for each");
  }
  const bool as_tensors = !std::ranges::all_of(specs, is_in_numpy, &op::OutputSpec::dtype);
  std::vector<Output> outputs;
  for (size_t i = 0; i < std::max<size_t>(specs.size(), 1); ++i) {
    const nb::handle given = is_tuple ? nb::handle(PyTuple_GET_ITEM(out.ptr(), Py_ssize_t(i)))
                             : i == 0 ? out
                                      : nb::handle(Py_None);
    outputs.push_back(given.is_none() ? new_output(call, specs[i], as_tensors)
                                      : given_output(call, given));
    outputs.back().is_given = !given.is_none();
  }
  return outputs;
}

nb::object finish(const Call& call, Output& output) {
  if (output.object.is_valid()) return std::move(output.object);
  nb::object tensor = nb::cast(PyTensor{output.view, std::move(output.memory)});
  if (call.leader().framework == Framework::tensorcraft) return tensor;
  return call_python(
      [&] { return frameworks("from_dlpack")(call.leader().object.type(), tensor); });
}

nb::object named_tuple(std::string_view op, const std::vector<op::OutputSpec>& specs,
                       nb::list values) {
  static const nb::module_* module = nullptr;
  const nb::dict results =
      kept(module, [] { return nb::module_::import_("tensorcraft._ops"); }).attr("RESULTS");
  nb::list key;
  key.append(std::string(op));
  for (const op::OutputSpec& s : specs) key.append(std::string(s.name));
  const nb::object found = results.attr("get")(nb::tuple(key));
  if (found.is_none())
    fail(ErrorKind::internal, op, ": its outputs do not say when a call returns them");
  return found(*values);
}

}  // namespace

nb::object call(size_t index, nb::tuple inputs, nb::tuple options, nb::handle out,
                nb::handle stream, nb::handle variant, nb::handle device) {
  const op::Operator& op = operator_at(index);
  if (nb::object product = packed_product(op, inputs, options, out, stream, variant, device);
      product.is_valid())
    return product;
  Call call(op, inputs, options, stream, device);
  const bool is_on_host = out.is_none() && call.leader().is_host_array();
  require_recorded(call.name(), call.device(), call.stream(), is_on_host);
  const op::Arguments arguments = call.arguments(variant_text(variant));
  std::vector<op::OutputSpec> specs;
  // If the only output is given, the run checks all that infer() would.
  if (out.is_none() || PyTuple_Check(out.ptr()) || op.description().outputs.size() > 1)
    specs = op.infer(arguments);
  std::vector<Output> outputs = make_outputs(call, out, specs);
  std::vector<TensorView> views;
  views.reserve(outputs.size());
  for (const Output& o : outputs) views.push_back(o.view);
  {
    const WithoutGil released;
    if (outputs[0].is_given) call.keep_operands(views[0]);
    op.run(views, arguments);
    for (const Output& o : outputs)
      if (o.host) copy_bytes(*o.host, o.view, call.stream());
  }
  call.mark_used();
  for (const Output& o : outputs)
    if (o.is_given) call.note_use_of(o.memory, o.object);
  if (outputs.size() == 1) return finish(call, outputs[0]);
  nb::list values;
  for (Output& o : outputs) values.append(finish(call, o));
  return call_python([&] { return named_tuple(call.name(), specs, values); });
}

size_t operator_index(nb::handle name) {
  const op::Operator* const found = &find_operator(to_text(name, "operator"));
  const op::OperatorList& all = operators();
  return size_t(std::ranges::find(all, found) - all.begin());
}

nb::dict explain(size_t index, nb::tuple inputs, nb::tuple options, nb::handle variant,
                 nb::handle device, nb::handle arch) {
  const op::Operator& op = operator_at(index);
  const Call call(op, inputs, options, nb::none(), device);
  const DeviceInfo target =
      arch.is_none() ? device_info(call.device()) : device_info_of_arch(to_text(arch, "arch"));
  const op::Arguments given = call.arguments(variant_text(variant));
  std::vector<TensorView> views;
  for (const TensorView& view : given.inputs) views.push_back(call.asked_about(view, target));
  std::vector<op::Value> values(given.options.begin(), given.options.end());
  for (op::Value& value : values)
    if (const auto* view = std::get_if<TensorView>(&value)) value = on_device(*view, target.device);
  const op::Arguments arguments{views, values, given.variant, given.stream};
  std::vector<TensorView> outputs;  // without memory: nothing is read or written
  for (const op::OutputSpec& spec : op.infer(arguments))
    outputs.emplace_back(nullptr, spec.dtype, spec.shape, target.device);
  op::Explanation e = op.explain(outputs, arguments, target);
  {
    const WithoutGil released;
    op::add_kernel_reports(e, target);
  }
  return to_dict(e);
}

}  // namespace tensorcraft::python

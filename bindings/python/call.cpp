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

// A call's results: what infer() says of them, and what the caller gives for each.
class Results {
 public:
  // out= is None, the first result's array, or a tuple of one entry for each result.
  Results(const op::Operator& op, const op::Arguments& arguments, nb::handle out)
      : op_(op), arguments_(arguments) {
    const bool is_tuple = PyTuple_Check(out.ptr());
    // If the only output is given, the run checks all that infer() would.
    if (out.is_none() || is_tuple || op.description().outputs.size() > 1)
      specs_ = op.infer(arguments);
    if (is_tuple && nb::len(out) != specs_.size()) refuse_number(nb::len(out));
    for (size_t i = 0; i < std::max<size_t>(specs_.size(), 1); ++i)
      given_.push_back(is_tuple ? nb::handle(PyTuple_GET_ITEM(out.ptr(), Py_ssize_t(i)))
                       : i == 0 ? out
                                : nb::handle(Py_None));
  }
  size_t size() const { return given_.size(); }
  nb::handle given(size_t i) const { return given_[i]; }  // None: the call makes it
  bool is_given(size_t i) const { return !given_[i].is_none(); }
  const std::vector<op::OutputSpec>& specs() const { return specs_; }

  // The array that the caller gives for one. A copy would help an argument that is read; here it
  // would take the result, so errors say what the array must be instead.
  ArrayArgument array(const Call& call, size_t i) const {
    try {
      const ArrayArgument a = to_array(given_[i], call.name(), "out", nb::none());
      if (!a.is_number() && a.object.is_valid()) return a;
    } catch (const Error& e) {
      const std::string_view text = e.what();
      const op::OutputSpec spec = specs_.empty() ? op_.infer(arguments_)[i] : specs_[i];
      fail(e.kind(), text.substr(0, text.find(';')), "; ", spec.name, " must be an array of ",
           spec.dtype, " of shape ", spec.shape, " for a call on ", call.device());
    }
    fail(ErrorKind::type, call.name(), ": out must be an array that can be written to, got ",
         class_name(given_[i]));
  }

 private:
  [[noreturn]] void refuse_number(size_t given) const {
    std::string names;
    for (const op::OutputSpec& s : specs_) names.append(names.empty() ? "" : ", ").append(s.name);
    fail(ErrorKind::value, op_.description().name, ": out: a tuple of ", given, " was given for ",
         specs_.size(), specs_.size() == 1 ? " result" : " results", " (", names,
         "); give an array or None for each");
  }

  const op::Operator& op_;
  const op::Arguments& arguments_;
  std::vector<op::OutputSpec> specs_;  // empty: there is one result, and it is given
  std::vector<nb::handle> given_;
};

// A NumPy array is computed on the device of the call and copied back.
void check_copied_back(const Call& call, const ArrayArgument& out) {
  if (!call.leader().is_host_array())
    fail(ErrorKind::value, call.name(), ": out is a NumPy array and the result is on ",
         call.device(), "; give an array of that device");
  if (out.view.read_only())
    fail(ErrorKind::buffer, call.name(), ": out: the tensor is read-only; give writable memory");
  if (!out.view.is_contiguous())
    fail(ErrorKind::value, call.name(),
         ": out: a NumPy array for a result of a GPU must be contiguous");
}

Output given_output(const Call& call, const ArrayArgument& array, nb::handle out) {
  const ArrayArgument a = settled_to_write(array, call.stream());
  if (!a.is_host_array()) return {a.view, nb::borrow(out), a.memory};
  if (!call.device().is_cuda())
    return {on_device(a.view, call.device()), nb::borrow(out), a.memory};
  check_copied_back(call, a);
  PyTensor t =
      own(Tensor(a.view.dtype(), a.view.shape(), call.device(), call.stream()), call.stream());
  return {t.view, nb::borrow(out), std::move(t.memory), a.view};
}

// All results that a call makes are of one kind: our tensors if NumPy lacks the dtype of one.
std::vector<Output> make_outputs(const Call& call, const Results& results) {
  const bool as_tensors =
      !std::ranges::all_of(results.specs(), is_in_numpy, &op::OutputSpec::dtype);
  std::vector<Output> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    outputs.push_back(results.is_given(i)
                          ? given_output(call, results.array(call, i), results.given(i))
                          : new_output(call, results.specs()[i], as_tensors));
    outputs.back().is_given = results.is_given(i);
  }
  return outputs;
}

// Lists the outputs of a call that is asked about, and allocates nothing.
std::vector<TensorView> outputs_asked_about(const Call& call, const Results& results,
                                            std::span<const TensorView> inputs,
                                            const DeviceInfo& target, bool is_here) {
  for (const op::OutputSpec& spec : results.specs())
    if (is_here && spec.in_place_of >= 0) call.updated(spec.in_place_of);
  std::vector<TensorView> outputs = op::imagined_outputs(results.specs(), inputs, target.device);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results.is_given(i)) continue;
    const ArrayArgument a = results.array(call, i);
    TensorView view = a.view;
    if (!is_here) {
      view = call.asked_about(view, target);
    } else if (a.is_host_array() && call.device().is_cuda()) {
      check_copied_back(call, a);
      view = TensorView(op::imagined_address(i), view.dtype(), view.shape(), call.device());
    } else if (a.is_host_array()) {
      view = on_device(view, call.device());
    }
    i < outputs.size() ? void(outputs[i] = view) : outputs.push_back(view);
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
  const Results results(op, arguments, out);
  std::vector<Output> outputs = make_outputs(call, results);
  std::vector<TensorView> views;
  views.reserve(outputs.size());
  for (const Output& o : outputs) views.push_back(o.view);
  without_gil(
      [&] {
        if (outputs[0].is_given) call.keep_operands(views[0]);
        op.run(views, arguments);
        for (const Output& o : outputs)
          if (o.host) copy_bytes(*o.host, o.view, call.stream());
      },
      [&] {
        call.mark_used();
        for (const Output& o : outputs)
          if (o.is_given) call.note_use_of(o.memory, o.object);
      });
  if (outputs.size() == 1) return finish(call, outputs[0]);
  nb::list values;
  for (Output& o : outputs) values.append(finish(call, o));
  return call_python([&] { return named_tuple(call.name(), results.specs(), values); });
}

size_t operator_index(nb::handle name) {
  const op::Operator* const found = &find_operator(to_text(name, "operator"));
  const op::OperatorList& all = operators();
  return size_t(std::ranges::find(all, found) - all.begin());
}

nb::dict explain(size_t index, nb::tuple inputs, nb::tuple options, nb::handle out,
                 nb::handle stream, nb::handle variant, nb::handle device, nb::handle arch) {
  const op::Operator& op = operator_at(index);
  const bool is_here = arch.is_none();
  const Call call(op, inputs, options, is_here ? stream : nb::none(), device);
  const DeviceInfo target =
      is_here ? device_info(call.device()) : device_info_of_arch(to_text(arch, "arch"));
  const op::Arguments given = call.arguments(variant_text(variant));
  std::vector<TensorView> views(given.inputs.begin(), given.inputs.end());
  std::vector<op::Value> values(given.options.begin(), given.options.end());
  if (!is_here) {
    for (TensorView& view : views) view = call.asked_about(view, target);
    for (op::Value& value : values)
      if (const auto* view = std::get_if<TensorView>(&value))
        value = on_device(*view, target.device);
  }
  const op::Arguments arguments{views, values, given.variant, given.stream};
  const Results results(op, arguments, out);
  const auto outputs = outputs_asked_about(call, results, views, target, is_here);
  if (results.is_given(0))
    Call::replace_crossing(views, outputs[0], [&](const TensorView& in) {
      return TensorView(op::imagined_address(op::kImaginedInputs), in.dtype(), in.shape(),
                        in.device());
    });
  op::Explanation e = op.explain(outputs, arguments, target);
  {
    const WithoutGil released;
    op::add_kernel_reports(e, target);
  }
  return to_dict(e);
}

}  // namespace tensorcraft::python

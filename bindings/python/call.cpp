// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"

#include <nanobind/stl/string.h>

#include <deque>
#include <vector>

namespace tensorcraft::python {
namespace {

bool is_host_array(const ArrayArgument& a) {
  return a.framework == Framework::numpy || a.framework == Framework::scalar;
}

// Everything one call borrows or makes, alive until it returns.
class Call {
 public:
  Call(const op::Operator& op, nb::tuple inputs, nb::tuple options, nb::handle device)
      : op_(op), description_(op.description()) {
    if (inputs.size() != description_.inputs.size())
      fail(ErrorKind::type, name(), ": takes ", description_.inputs.size(), " arrays, got ", inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i)
      arrays_.push_back(to_array(inputs[i], name(), description_.inputs[i].name));
    num_inputs_ = arrays_.size();
    for (size_t i = 0; i < options.size(); ++i) add_option(description_.options[i], options[i]);
    pick_device(device);
    resolve_scalars();
    for (auto& a : arrays_) move_to_device(a);
    for (size_t i = 0; i < num_inputs_; ++i) inputs_.push_back(arrays_[i].view);
    for (const auto& [option, array] : tensor_options_) options_[option] = arrays_[array].view;
  }

  std::string_view name() const { return description_.name; }
  Device device() const { return device_; }
  // The first argument that is an array and not a number; numbers alone count as NumPy.
  const ArrayArgument& leader() const {
    for (const auto& a : arrays_)
      if (!a.is_weak()) return a;
    return arrays_[0];
  }
  op::Arguments arguments(std::string_view variant, std::optional<StreamRef> stream) const {
    return {inputs_, options_, variant, stream};
  }
  StreamRef stream(nb::handle given) const {
    if (!device_.is_cuda()) return {};
    if (!given.is_none()) return to_stream(given, device_.index);
    if (const ExchangeApi* api = leader().api) {
      void* handle = nullptr;
      if (api->current_stream(dlpack::kDLCUDA, device_.index, &handle) != 0) throw nb::python_error();
      return StreamRef(static_cast<CUstream_st*>(handle), device_.index);
    }
    return current_stream(device_.index);
  }

 private:
  void add_option(const op::Parameter& p, nb::handle value) {
    options_.emplace_back();
    if (value.is_none()) return;
    if (p.kind == op::ParameterKind::tensor) {
      tensor_options_.emplace_back(options_.size() - 1, arrays_.size());
      arrays_.push_back(to_array(value, name(), p.name));
    } else if (p.kind == op::ParameterKind::dtype) {
      options_.back() = to_dtype(value);
    } else if (PyBool_Check(value.ptr())) {
      options_.back() = nb::cast<bool>(value);
    } else if (nb::isinstance<nb::str>(value)) {
      options_.back() = std::string_view(strings_.emplace_back(nb::cast<std::string>(value)));
    } else if (PyFloat_Check(value.ptr())) {
      options_.back() = nb::cast<double>(value);
    } else if (PyIndex_Check(value.ptr())) {
      options_.back() = nb::cast<int64_t>(nb::int_(value));
    } else if (PyNumber_Check(value.ptr())) {  // NumPy scalars
      options_.back() = nb::cast<double>(nb::float_(value));
    } else {
      fail(ErrorKind::type, name(), ": ", p.name, " has a type that no option takes");
    }
  }

  void pick_device(nb::handle given) {
    const ArrayArgument* placed = nullptr;  // the first array whose framework knows devices
    for (const auto& a : arrays_)
      if (!is_host_array(a) && !placed) placed = &a;
    if (!placed) {
      device_ = given.is_none() ? default_device() : to_device(given);
      if (device_.type == DeviceType::simt)
        fail(ErrorKind::unsupported, name(), ": device \"simt\" is not part of this build");
      return;
    }
    device_ = placed->view.device();
    if (!given.is_none() && to_device(given) != device_)
      fail(ErrorKind::value, name(), ": device=\"", to_device(given), "\" contradicts an array on ", device_,
           "; move the array, or leave device out");
    for (const auto& a : arrays_)
      if (a.framework == Framework::numpy && device_.is_cuda())
        fail(ErrorKind::value, name(), ": host and device arrays are mixed; move the NumPy array with tc.asarray(x, device=\"", device_, "\")");
  }

  // A Python number takes the dtype of the array beside it (float32 where that holds integers).
  void resolve_scalars() {
    const DType beside = leader().view.dtype();
    for (auto& a : arrays_) {
      if (!a.is_weak() || leader().is_weak()) continue;
      const bool is_float = is_floating(a.view.dtype());
      const DType wanted = is_float && !is_floating(beside) ? DType::float32 : beside;
      if (a.view.dtype() == wanted) continue;
      nb::object converted = nb::module_::import_("tensorcraft._frameworks").attr("scalar")(nb::cast(PyTensor{a.view, a.owner}), std::string(to_string(wanted)));
      PyTensor* t = nb::cast<PyTensor*>(converted);
      a.view = t->view;
      a.owner = t->owner;
    }
  }

  void move_to_device(ArrayArgument& a) {
    if (!device_.is_cuda() || !is_host_array(a)) return;
    Tensor copy(a.view.dtype(), a.view.shape(), device_);
    const nb::object contiguous = a.view.is_contiguous() ? nb::object() : nb::module_::import_("numpy").attr("ascontiguousarray")(nb::handle(a.like));
    const ArrayArgument from = a.view.is_contiguous() ? a : to_array(contiguous, name(), "array");
    copy_bytes(copy, from.view, current_stream(device_.index));
    PyTensor t = own(std::move(copy));
    a.view = t.view;
    a.owner = t.owner;
  }

  const op::Operator& op_;
  const op::Description& description_;
  std::vector<ArrayArgument> arrays_;
  std::vector<TensorView> inputs_;
  std::vector<op::Value> options_;
  std::vector<std::pair<size_t, size_t>> tensor_options_;  // option, array
  std::deque<std::string> strings_;
  size_t num_inputs_ = 0;
  Device device_;
};

// A NumPy result is computed where the call runs and copied back where that is a GPU.
nb::object finish(const Call& call, NewArray& result) {
  if (result.object.is_valid()) return std::move(result.object);
  if (!call.device().is_cuda()) return to_numpy(result.view, result.owner);
  PyTensor host = own(static_cast<Tensor*>(result.owner.get())->to(Device::cpu()));
  return to_numpy(host.view, host.owner);
}

nb::object named_tuple(std::string_view op, const std::vector<op::OutputSpec>& specs, nb::list values) {
  nb::list names;
  for (const auto& s : specs) names.append(std::string(s.name));
  return nb::module_::import_("tensorcraft._frameworks").attr("named_tuple")(std::string(op), nb::tuple(names), values);
}

std::string text(nb::handle h) { return h.is_none() ? std::string() : nb::cast<std::string>(h); }

nb::object run_into(const op::Operator& op, const Call& call, nb::handle out, const op::Arguments& arguments) {
  ArrayArgument target = to_array(out, call.name(), "out");
  if (is_host_array(target) && target.like == nullptr)
    fail(ErrorKind::type, call.name(), ": out must be an array, not a list or number");
  const bool copy_back = call.device().is_cuda() && target.framework == Framework::numpy;
  if (!copy_back) {
    const nb::gil_scoped_release release;
    op.run(std::span(&target.view, 1), arguments);
    return nb::borrow(out);
  }
  if (target.view.read_only()) fail(ErrorKind::buffer, call.name(), ": out: the array is read-only");
  if (!target.view.is_contiguous())
    fail(ErrorKind::value, call.name(), ": out: a NumPy array for a result of a GPU must be contiguous");
  const Tensor on_device(target.view.dtype(), target.view.shape(), call.device());
  const TensorView view = on_device;
  op.run(std::span(&view, 1), arguments);
  copy_bytes(target.view, view, arguments.stream.value_or(current_stream(call.device().index)));
  return nb::borrow(out);
}

}  // namespace

nb::object call(int index, nb::tuple inputs, nb::tuple options, nb::handle out, nb::handle stream,
                nb::handle variant, nb::handle device) {
  const op::Operator& op = *operators().at(size_t(index));
  const Call call(op, inputs, options, device);
  const std::string wanted = text(variant);
  const StreamRef on = call.stream(stream);
  const op::Arguments arguments = call.arguments(wanted, on);
  if (!out.is_none()) return run_into(op, call, out, arguments);
  const auto specs = op.infer(arguments);
  std::vector<NewArray> results;
  std::vector<TensorView> views;
  for (const auto& spec : specs) {
    results.push_back(new_array(call.leader(), spec.dtype, spec.shape, call.device(), on));
    views.push_back(results.back().view);
  }
  {
    const nb::gil_scoped_release release;
    op.run(views, arguments);
  }
  if (results.size() == 1) return finish(call, results[0]);
  nb::list values;
  for (auto& r : results) values.append(finish(call, r));
  return named_tuple(call.name(), specs, values);
}

nb::dict explain(int index, nb::tuple inputs, nb::tuple options, nb::handle variant, nb::handle device) {
  const op::Operator& op = *operators().at(size_t(index));
  const Call call(op, inputs, options, device);
  const std::string wanted = text(variant);
  const op::Arguments arguments = call.arguments(wanted, std::nullopt);
  std::vector<Tensor> memory;
  std::vector<TensorView> views;
  for (const auto& spec : op.infer(arguments)) {
    memory.emplace_back(spec.dtype, spec.shape, call.device());
    views.push_back(memory.back());
  }
  const op::Explanation e = op.explain(views, arguments, device_info(call.device()));
  nb::list rows;
  for (const auto& c : e.variants) {
    nb::dict row;
    row["name"] = std::string(c.variant.name);
    row["idea"] = std::string(c.variant.idea);
    row["accepted"] = c.accepted;
    row["reason"] = c.reason;
    row["config"] = c.plan ? c.plan->kernel.rung->config_text(c.plan->kernel.config.data()) : std::string();
    rows.append(row);
  }
  nb::dict result;
  result["op"] = std::string(e.op);
  result["variant"] = std::string(e.variant);
  result["variants"] = rows;
  result["floor_us"] = e.floor_us;
  result["bytes"] = e.cost.bytes;
  result["flops"] = e.cost.flops;
  result["text"] = op::to_string(e);
  return result;
}

}  // namespace tensorcraft::python

// SPDX-License-Identifier: Apache-2.0
#include "schema.hpp"

#include "arguments.hpp"
#include "bound_call.hpp"
#include "memory.hpp"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace tensorcraft::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// An array of which there is no memory: all that a check may look at.
struct ArraySpec {
  DType dtype;
  Dims shape, strides;
  Device device;
};

std::string_view name_of_kind(op::ParameterKind kind) {
  constexpr std::string_view kNames[] = {"tensor",        "boolean",      "integer", "number",
                                         "choice",        "dtype",        "text",    "integers",
                                         "integer_lists", "named_values", "settings"};
  return kNames[size_t(kind)];
}

nb::dict to_dict(const op::Parameter& p) {
  nb::dict d;
  d["name"] = std::string(p.name);
  d["kind"] = std::string(name_of_kind(p.kind));
  d["optional"] = p.optional;
  d["positional"] = p.positional;
  d["or_tensor"] = p.or_tensor;
  d["written"] = p.written;
  d["default"] = p.default_value;
  nb::list dtypes;
  for (const DType dtype : p.doc.dtypes) dtypes.append(std::string(to_string(dtype)));
  d["dtypes"] = dtypes;
  return d;
}

nb::dict describe(size_t index) {
  const op::Description& op = operator_at(index).description();
  nb::list inputs, options, outputs;
  for (const op::Parameter& p : op.inputs)
    if (!p.named) inputs.append(to_dict(p));
  for (const op::Parameter& p : op.options) options.append(to_dict(p));
  for (const op::OutputInfo& o : op.outputs)
    outputs.append(nb::make_tuple(std::string(o.name), std::string(o.when)));
  nb::dict d;
  d["inputs"] = inputs;
  d["options"] = options;
  d["outputs"] = outputs;
  return d;
}

// Views of addresses that nothing is at, each its own, in the place of specs.
class StandIns {
 public:
  nb::object in_place_of(nb::handle value) {
    const ArraySpec* spec = nullptr;
    if (PyDict_Check(value.ptr())) {
      nb::dict all;
      for (const auto& [key, held] : nb::borrow<nb::dict>(value)) all[key] = in_place_of(held);
      return all;
    }
    if (!nb::try_cast(value, spec, false) || !spec) return nb::borrow(value);
    void* const address = reinterpret_cast<void*>(next_);  // NOLINT(performance-no-int-to-ptr)
    devices_.emplace_back(address, spec->device);
    next_ += kApart;
    return nb::cast(
        PyTensor{{address, spec->dtype, spec->shape, spec->strides, Device::cpu()}, {}});
  }
  nb::tuple all_of(nb::tuple values) {
    nb::list all;
    for (nb::handle value : values) all.append(in_place_of(value));
    return nb::tuple(all);
  }
  // Where its array is said to be; that of the first array for what is no spec.
  TensorView placed(const TensorView& view) const {
    for (const auto& [address, device] : devices_)
      if (address == view.data()) return on_device(view, device);
    return on_device(view, device());
  }
  Device device() const { return devices_.empty() ? Device::cpu() : devices_[0].second; }

 private:
  static constexpr uintptr_t kApart = uintptr_t(1) << 44;
  uintptr_t next_ = kApart;
  std::vector<std::pair<const void*, Device>> devices_;
};

DeviceInfo info_of(Device device) {
  const bool is_here =
      !device.is_cuda() || device == Device::simt() || device.index < cuda_device_count();
  return is_here ? device_info(device) : device_info_of_arch("sm_90a");
}

// Number, word, sizes or lists of sizes; arrays and numbers that the caller names as pairs of a
// name and a number or None. None for what is not given, and for a tensor.
nb::object to_python(const op::Value& value) {
  const auto to_list = [](const auto& items, auto&& convert) {
    nb::list list;
    for (const auto& item : items) list.append(convert(item));
    return list;
  };
  const auto convert = [&]<class T>(const T& v) -> nb::object {
    if constexpr (std::is_same_v<T, std::monostate> || std::is_same_v<T, TensorView>)
      return nb::none();
    else if constexpr (std::is_same_v<T, DType>)
      return nb::cast(std::string(to_string(v)));
    else if constexpr (std::is_same_v<T, std::string_view>)
      return nb::cast(std::string(v));
    else if constexpr (std::is_same_v<T, Dims>)
      return to_tuple(v);
    else if constexpr (std::is_same_v<T, std::vector<Dims>>)
      return to_list(v, &to_tuple);
    else if constexpr (std::is_same_v<T, op::NamedValues>)
      return to_list(v, [](const op::NamedValue& named) {
        const auto number = [](const auto& n) -> nb::object {
          if constexpr (std::is_same_v<decltype(n), const std::monostate&>)
            return nb::none();
          else
            return nb::cast(n);
        };
        return nb::make_tuple(std::string(named.name), std::visit(number, named.number));
      });
    else
      return nb::cast(v);
  };
  return std::visit(convert, value);
}

// A call of which there are only specs. Fails as the call would.
nb::dict infer(size_t index, nb::tuple inputs, nb::tuple options, nb::handle variant) {
  const op::Operator& op = operator_at(index);
  StandIns stand_ins;
  const nb::tuple arrays = stand_ins.all_of(inputs), values = stand_ins.all_of(options);
  const Call call(op, arrays, values, nb::none(), nb::none());
  const op::Arguments given = call.arguments(variant_text(variant));
  nb::list read, settings, results;
  const auto add_read = [&](const TensorView& view) {
    read.append(nb::make_tuple(std::string(to_string(view.dtype())), to_tuple(view.shape())));
    return stand_ins.placed(view);
  };
  std::vector<TensorView> views;
  for (const TensorView& view : given.inputs) views.push_back(add_read(view));
  std::vector<op::Value> placed(given.options.begin(), given.options.end());
  for (op::Value& value : placed) {
    settings.append(to_python(value));
    if (const auto* view = std::get_if<TensorView>(&value)) value = add_read(*view);
  }
  const op::Arguments arguments{views, placed, given.variant, given.stream};
  const std::vector<op::OutputSpec> specs = op.infer(arguments);
  const auto outputs = op::imagined_outputs(specs, views, stand_ins.device());
  for (const op::OutputSpec& spec : specs)
    results.append(nb::make_tuple(std::string(spec.name), std::string(to_string(spec.dtype)),
                                  to_tuple(spec.shape), spec.in_place_of));
  op.explain(outputs, arguments, info_of(stand_ins.device()));  // the check of everything else
  nb::dict d;
  d["results"] = results;
  d["arrays"] = read;
  d["settings"] = settings;
  return d;
}

}  // namespace

void register_schema(nb::module_& m) {
  nb::class_<ArraySpec>(m, "ArraySpec", "An array without memory, for infer.")
      .def(
          "__init__",
          [](ArraySpec* spec, nb::handle dtype, nb::handle shape, nb::handle strides,
             nb::handle device) {
            new (spec) ArraySpec{to_dtype(dtype), to_dims(shape), to_dims(strides, "strides"),
                                 to_device(device)};
          },
          "dtype"_a, "shape"_a, "strides"_a, "device"_a);
  m.def("describe", &describe, "index"_a, "Parameters and results of an operator.");
  m.def(
      "infer", &infer, "index"_a, "inputs"_a, "options"_a, "variant"_a.none(),
      "Of a call that is not made: name, dtype, shape and the input written in place (-1: none) of "
      "each result; dtype and shape of each array that is read, and each option's value.");
}

}  // namespace tensorcraft::python

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "arguments.hpp"
#include "arrays.hpp"
#include "gil.hpp"
#include "graph.hpp"
#include "stream.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/op/operator.hpp"
#include "tensorcraft/ops/all.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The arguments of a call from Python, as the library takes them.
namespace tensorcraft::python {

inline constexpr const char* kKeywords =
    "; device, out, out_dtype, stream and variant are keywords of every operator, so no array can "
    "have their names";

// Everything one call borrows or makes, alive until it returns.
class Call {
 public:
  Call(const op::Operator& op, nb::tuple inputs, nb::tuple options, nb::handle stream,
       nb::handle device)
      : description_(op.description()), given_stream_(stream) {
    arrays_.reserve(inputs.size() + options.size());
    options_.resize(options.size());
    for (size_t i = 0; i < inputs.size(); ++i)
      add_array(inputs[i], description_.inputs[i], description_.inputs[i].name);
    for (size_t i = 0; i < options.size(); ++i)
      if (is_named_values(i)) set_named_values(i, options[i]);
    const size_t num_inputs = arrays_.size();
    for (size_t i = 0; i < options.size(); ++i)
      if (!is_named_values(i)) set_option(i, options[i]);
    const ArrayArgument* const placed = pick_device(device);
    pick_stream(placed ? *placed : leader());
    for (ArrayArgument& a : arrays_) a.is_number() ? make_scalar(a) : settle_to_read(a, stream_);
    if (device_.is_cuda())
      for (ArrayArgument& a : arrays_)
        if (a.is_host_array() && !stays_on_host(a)) move_to_device(a);
    if (device_ == Device::simt())
      for (ArrayArgument& a : arrays_)
        if (a.is_host_array()) a.view = on_device(a.view, device_);
    for (size_t i = 0; i < num_inputs; ++i) inputs_.push_back(arrays_[i].view);
    for (const auto& [option, array] : tensor_options_) options_[option] = arrays_[array].view;
  }

  // In place, an operand that lies across the output is read as it was before: copied first, as
  // NumPy does.
  void keep_operands(const TensorView& out) {
    replace_crossing(inputs_, out, [&](const TensorView& in) {
      return copies_.emplace_back(tensorcraft::copy(in, {.stream = stream_})).view();
    });
  }
  template <class Copy>
  static void replace_crossing(std::vector<TensorView>& inputs, const TensorView& out,
                               const Copy& copy) {
    const auto is_out = [&](const TensorView& t) {
      return t.data() == out.data() && t.dtype() == out.dtype() && t.shape() == out.shape() &&
             t.strides() == out.strides();
    };
    if (std::ranges::none_of(inputs, is_out)) return;
    for (TensorView& in : inputs)
      if (!is_out(in) && may_overlap(in, out)) in = copy(in);
  }

  std::string_view name() const { return description_.name; }
  Device device() const { return device_; }
  StreamRef stream() const { return stream_; }
  void note_use_of(const std::shared_ptr<Memory>& memory, nb::handle object) const {
    if (device_.is_cuda()) note_use(memory, object, stream_);
  }
  // The first argument that is an array, not a number or a list; these alone count as NumPy.
  const ArrayArgument& leader() const {
    for (const ArrayArgument& a : arrays_)
      if (!a.is_number() && a.object.is_valid()) return a;
    return arrays_[0];
  }
  op::Arguments arguments(std::string_view variant) const {
    return {inputs_, options_, variant, stream_};
  }
  // The array of an input that is written in place.
  const ArrayArgument& updated(int i) const {
    const ArrayArgument& a = arrays_[size_t(i)];
    if (!stays_on_host(a)) check_in_place(a, device_, name(), description_.inputs[size_t(i)].name);
    return a;
  }
  // A tensor as explain() asks about it on a device: one of the host stays there if the operator
  // reaches it.
  TensorView asked_about(const TensorView& t, const DeviceInfo& target) const {
    const bool stays =
        has_mixed_devices_ && target.device == device_ && t.device() == Device::cpu();
    return stays ? t : on_device(t, target.device);
  }
  // A stream of which only a number is known may be gone when its memory is freed.
  bool stream_may_end() const {
    return device_.is_cuda() && !given_stream_.is_none() &&
           !nb::isinstance<PyStream>(given_stream_);
  }
  void mark_used() const {
    for (const ArrayArgument& a : arrays_) note_use_of(a.memory, a.object);
  }

 private:
  void add_array(nb::handle object, const op::Parameter& p, std::string_view called) {
    // An input of a fixed place; an option that is None has no array.
    if (p.optional && !p.named && object.is_none())
      return arrays_.push_back({.view = op::absent_input(Device::cpu()), .object = {}});
    // A tensor is the usual case, and none of what follows.
    nb::object scalar =
        nb::isinstance<PyTensor>(object) || p.written ? nb::object() : numpy_scalar(object);
    if (scalar.is_valid()) object = packed_.emplace_back(std::move(scalar));
    const bool is_plain = is_list(object) || PyLong_Check(object.ptr());
    const DType whole = is_plain ? whole_dtype(p) : DType::int64;
    const Uint64 uint64 = p.addresses ? Uint64::as_int64 : Uint64::refused;
    arrays_.push_back(to_array(object, name(), called, given_stream_, whole, p.doc.dtypes, uint64));
    ArrayArgument& a = arrays_.back();
    if (!a.is_number()) return;
    a.takes = p.doc.dtypes;
    if (PyFloat_Check(object.ptr())) return;
    a.keeps_dtype = contains(p.doc.dtypes, DType::int32) ||
                    (!p.doc.dtypes.empty() && p.doc.dtypes[0] == DType::bool_);
    if (a.keeps_dtype && a.view.dtype() == DType::int64) a.view = {nullptr, whole, {}};
  }

  // Returns the dtype that integers of Python have in an argument.
  DType whole_dtype(const op::Parameter& p) const {
    const std::span<const DType> takes =
        p.doc.dtypes.empty() ? std::span<const DType>(description_.dtypes) : p.doc.dtypes;
    for (const DType dtype : {DType::int64, DType::int32, DType::float32})
      if (contains(takes, dtype)) return dtype;
    return DType::int64;
  }

  bool is_named_values(size_t i) const {
    return description_.options[i].kind == op::ParameterKind::named_values;
  }

  // The keyword arguments that are no parameter: a number is one, anything else is an input.
  void set_named_values(size_t i, nb::handle values) {
    for (const auto& [key, value] : nb::cast<nb::dict>(values)) {
      op::NamedValue& named = named_values_.emplace_back(op::NamedValue{to_text(key, "name")});
      if (PyBool_Check(value.ptr()))
        named.number = value.ptr() == Py_True;
      else if (PyLong_Check(value.ptr()))
        named.number = to_whole(value, named.name);
      else if (PyFloat_Check(value.ptr()))
        named.number = PyFloat_AS_DOUBLE(value.ptr());
      else
        add_array(value, *std::ranges::find(description_.inputs, true, &op::Parameter::named),
                  named.name);
    }
    const auto own = size_t(std::ranges::count(description_.inputs, false, &op::Parameter::named));
    if (arrays_.empty() || arrays_.size() > description_.inputs.size())
      fail(ErrorKind::value, name(), own ? ": takes 0 to " : ": takes 1 to ",
           description_.inputs.size() - own, " arrays as keyword arguments, got ",
           arrays_.size() - own, arrays_.empty() ? kKeywords : "");
    options_[i] = op::NamedValues(named_values_);
  }

  int64_t to_whole(nb::handle value, std::string_view named) const {
    int overflow = 0;
    const int64_t whole = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    if (overflow)
      fail(ErrorKind::value, name(), ": ", named,
           " does not fit 64 bits; use a float or a number from -2**63 to 2**63 - 1");
    return whole;
  }

  void set_option(size_t i, nb::handle value) {
    const op::Parameter& p = description_.options[i];
    if (value.is_none()) {
      if (p.optional) return;
      fail(ErrorKind::type, name(), ": ", p.name, " must not be None",
           p.default_value.empty() ? "" : "; leave it out for " + p.default_value);
    }
    try {
      convert_option(i, p, value);
    } catch (const Error& e) {
      if (std::string_view(e.what()).starts_with(join(name(), ": "))) throw;
      fail(e.kind(), name(), ": ", e.what());
    }
  }

  void convert_option(size_t i, const op::Parameter& p, nb::handle value) {
    nb::object list;
    if (takes_lists(p)) value = list = list_of_small(value);
    if (takes_array(p, value)) {
      tensor_options_.emplace_back(i, arrays_.size());
      add_array(value, p, p.name);
    } else if (p.kind == op::ParameterKind::dtype) {
      options_[i] = to_dtype(value);
    } else if (p.kind == op::ParameterKind::integers && is_list(value)) {
      options_[i] = to_dims(value, p.name);
    } else if (p.kind == op::ParameterKind::integer_lists && is_list(value)) {
      options_[i] = to_integer_lists(value, p.name);
    } else if (p.kind == op::ParameterKind::settings) {
      packed_.push_back(to_settings(value, p.name));
      options_[i] = to_text(packed_.back(), p.name);
    } else if (is_bool(value)) {
      options_[i] = PyObject_IsTrue(value.ptr()) == 1;
    } else if (PyUnicode_Check(value.ptr())) {
      options_[i] = to_text(value, p.name);
    } else if (PyLong_Check(value.ptr())) {
      options_[i] = to_int64(value, p.name);
    } else if (PyFloat_Check(value.ptr())) {
      options_[i] = PyFloat_AS_DOUBLE(value.ptr());
    } else if (const nb::object index = as_index(value); index.is_valid()) {
      options_[i] = to_int64(index, p.name);
    } else if (PyTensor* t = nullptr; nb::try_cast(value, t, false) && t && t->view.size() != 1) {
      fail(ErrorKind::type, name(), ": ", p.name, " must be a number, got a tensor of shape ",
           t->view.shape(), "; tc.elementwise computes with arrays, as in \"clip(x, low, high)\"");
    } else if (PyNumber_Check(value.ptr())) {
      options_[i] = to_double(value, p.name);
    } else {
      fail(ErrorKind::type, name(), ": ", p.name, " must be a number, text, dtype or None, got ",
           class_name(value));
    }
  }

  static bool is_on_host(const ArrayArgument& a) { return a.view.device() == Device::cpu(); }
  // An array of NumPy, which lies in memory that the operator reaches from where the others are. A
  // list is none.
  bool stays_on_host(const ArrayArgument& a) const {
    return has_mixed_devices_ && a.framework == Framework::numpy && a.object.is_valid();
  }
  static bool takes_lists(const op::Parameter& p) {
    return p.kind == op::ParameterKind::integers || p.kind == op::ParameterKind::integer_lists;
  }

  // Returns the array whose device it is, the first whose framework knows devices; null if none is.
  const ArrayArgument* pick_device(nb::handle given) {
    const ArrayArgument* placed = nullptr;
    for (const ArrayArgument& a : arrays_) {
      const bool is_last = placed && !(description_.reaches_host && is_on_host(*placed));
      if (!a.is_host_array() && !is_last) placed = &a;
    }
    if (!placed) {
      device_ = given.is_none() ? default_device() : to_device(given);
      return nullptr;
    }
    device_ = placed->view.device();
    has_mixed_devices_ = description_.reaches_host && device_.is_cuda();
    if (!given.is_none() && to_device(given) != device_)
      fail(ErrorKind::value, name(), ": device=\"", to_device(given), "\" contradicts an array on ",
           device_, "; move the array, or leave device out");
    // A list or a number goes where the arrays are; an array of NumPy is the caller's to move.
    const auto has_to_move = [&](const ArrayArgument& a) {
      return a.framework == Framework::numpy && a.object.is_valid() && !stays_on_host(a);
    };
    if (device_.is_cuda() && std::ranges::any_of(arrays_, has_to_move))
      fail(ErrorKind::value, name(),
           ": host and device arrays are mixed; move the host array with tc.asarray(x, device=\"",
           device_, "\")");
    return placed;
  }

  void pick_stream(const ArrayArgument& placed) {
    if (!given_stream_.is_none() && device_ == Device::cpu())
      fail(ErrorKind::value, name(), ": Tensor must be on CUDA device: stream= was given and ",
           description_.inputs[0].name, " is on ", device_, "; leave stream out");
    if (!device_.is_cuda()) return;
    stream_ = given_stream_.is_none() ? stream_of(placed, device_.index)
                                      : to_stream(given_stream_, device_.index);
  }

  // A number of an argument that takes float32, but not the dtype of the array beside it, is
  // float32. Any other takes the dtype of that array if it can hold the number's kind.
  void make_scalar(ArrayArgument& a) {
    DType dtype = a.view.dtype();
    const ArrayArgument* beside = nullptr;
    for (const ArrayArgument& b : arrays_)
      if (!b.is_number() && (!beside || beside->view.dtype() == DType::bool_)) beside = &b;
    const DType theirs = beside ? beside->view.dtype() : dtype;
    if (contains(a.takes, DType::float32) && !contains(a.takes, theirs)) {
      dtype = a.keeps_dtype ? dtype : DType::float32;
    } else if (beside && !a.keeps_dtype) {
      const bool fits = is_floating(theirs) || dtype == DType::bool_ ||
                        (dtype == DType::int64 && theirs != DType::bool_);
      // The condition of where is bool, whatever is beside it.
      const auto& taken = description_.dtypes;
      const bool stays = &a == arrays_.data() && taken.size() == 1 && taken[0] == dtype;
      if (fits && !stays) dtype = theirs;
    }
    PyTensor t = to_scalar(a.object, dtype);
    a.view = t.view;
    a.memory = std::move(t.memory);
  }

  void move_to_device(ArrayArgument& a) {
    const Dims shape = a.view.shape();
    const TensorView host = contiguous(a);
    Tensor copy(host.dtype(), host.shape(), device_, stream_);
    const TensorView view = copy.view();
    if (host.size()) {
      const WithoutGil released;
      if (stream_.is_capturing())
        fill_in_graph(view.writable_data(), host);
      else  // pageable memory: the driver has read it when the call returns
        cuda::copy_async(view.writable_data(), host.data(), host.nbytes(), stream_);
    }
    const PyTensor t = own(std::move(copy), stream_);
    a.view = host.shape() == shape ? t.view : t.view.broadcast_to(shape);
    a.memory = t.memory;
  }

  // A graph would copy from the host whenever it runs, from memory that is gone by then. What a
  // fill writes it keeps: a number goes as one for each run of equal bytes.
  void fill_in_graph(void* to, const TensorView& host) const {
    const std::span bytes(static_cast<const unsigned char*>(host.data()), host.nbytes());
    if (host.size() > 1)
      fail(ErrorKind::unsupported, name(), ": a host array of ", bytes.size(),
           " bytes cannot be used while a CUDA graph is captured, as the graph would read it again "
           "whenever it runs; move it to the GPU first with tc.asarray(x, device=\"",
           device_, "\")");
    for (size_t first = 0, end = 0; first < bytes.size(); first = end) {
      while (end < bytes.size() && bytes[end] == bytes[first]) ++end;
      cuda::fill_async(static_cast<unsigned char*>(to) + first, bytes[first], end - first, stream_);
    }
  }

  // In row-major order. What a large array repeats along an axis goes once: such an axis has one
  // element. A small array goes whole, as operators want their vectors without gaps.
  TensorView contiguous(ArrayArgument& a) {
    constexpr size_t kLarge = size_t(64) << 20;
    if (a.view.is_contiguous()) return a.view;
    packed_.push_back(contiguous_numpy(a.view.nbytes() >= kLarge ? without_repeats(a.object, a.view)
                                                                 : nb::borrow(a.object)));
    return to_array(packed_.back(), name(), "array", nb::none()).view;
  }

  const op::Description& description_;
  nb::handle given_stream_;
  std::vector<ArrayArgument> arrays_;
  std::vector<TensorView> inputs_;
  std::vector<Tensor> copies_;
  std::vector<op::Value> options_;
  std::vector<op::NamedValue> named_values_;
  std::vector<std::pair<size_t, size_t>> tensor_options_;  // option, array
  std::vector<nb::object> packed_;
  Device device_;
  StreamRef stream_;
  bool has_mixed_devices_ = false;  // memory of the host may stand beside that of a GPU
};

inline const op::Operator& operator_at(size_t index) {
  const op::OperatorList& all = operators();
  if (index >= all.size()) fail(ErrorKind::internal, "operator ", index, " is not registered");
  return *all[index];
}

inline std::string_view variant_text(nb::handle variant) {
  return variant.is_none() ? std::string_view() : to_text(variant, "variant");
}

}  // namespace tensorcraft::python

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/operator.hpp"
#include "tensorcraft/op/launch/plan_cache.hpp"

#include <functional>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

// How the fields of an operator's Options become its parameters.
namespace tensorcraft::op {

// The field of Options that holds a tensor, or may; without `in` there is none.
template <class Options>
struct TensorField {
  std::function<std::optional<TensorView>&(Options&)> in;
  // Null if these options have no tensor there.
  const TensorView* of(const Options& options) const {
    if (!in) return nullptr;
    const std::optional<TensorView>& tensor =
        in(const_cast<Options&>(options));  // it is not written
    return tensor ? &*tensor : nullptr;
  }
};

// A field of Options as a parameter of the operator.
template <class Options>
struct Option {
  Parameter parameter;
  std::function<void(std::string_view op, Options&, const Value&)> set;
  std::function<void(CallKey&, const Options&)> add_to;
  TensorField<Options> tensor = {};          // of what may be an optional input
  NamedValues Options::* named = nullptr;    // of what names the inputs
  NumberOrTensor Options::* free = nullptr;  // of a number that only kernels look at
  // The value as Parameter::default_value spells it; "None" for a tensor.
  std::function<std::string(const Options&)> text = {};
  bool forbids_tuning = false;  // if it is not the default: then only the cost model may choose
};

// A field of Options as text. Of a tensor there is none.
template <class T>
std::string field_text(const T& value) {
  return Field<T>::text(value);
}
template <class T>
std::string field_text(const std::optional<T>& value) {
  if constexpr (!std::is_same_v<T, TensorView>)
    if (value) return Field<T>::text(*value);
  return "None";
}

template <class Options, class T>
Option<Options> option(std::string_view name, T Options::* field, ParameterDoc doc) {
  Option<Options> o{{name, doc, Field<T>::kind}, {}, {}};
  o.add_to = [field](CallKey& key, const Options& options) { key.add(options.*field); };
  o.text = [field](const Options& options) { return field_text(options.*field); };
  o.parameter.default_value = field_text(Options{}.*field);
  if constexpr (std::is_enum_v<T> && !std::is_same_v<T, DType>) {
    o.parameter.choices = EnumNames<T>::names;
    o.parameter.optional = EnumNames<T>::names[0] == "none";
  }
  const bool takes_none = o.parameter.optional;  // else "not given" leaves the default
  o.set = [name, field, takes_none](std::string_view op, Options& options, const Value& v) {
    if (!std::holds_alternative<std::monostate>(v) || takes_none)
      options.*field = Field<T>::get(op, name, v);
  };
  if constexpr (std::is_same_v<T, NamedValues>) o.named = field;
  if constexpr (std::is_same_v<T, NumberOrTensor> || std::is_same_v<T, BooleanOrTensor>) {
    o.parameter.or_tensor = true;
    o.tensor.in = [field](Options& options) -> auto& { return (options.*field).tensor; };
  }
  if constexpr (std::is_same_v<T, NumberOrTensor>)
    o.parameter.optional = !(Options{}.*field).is_given();
  return o;
}

template <class Options, class T>
Option<Options> option(std::string_view name, std::optional<T> Options::* field, ParameterDoc doc) {
  Option<Options> o{{name, doc, Field<T>::kind}, {}, {}};
  o.add_to = [field](CallKey& key, const Options& options) { key.add(options.*field); };
  o.text = [field](const Options& options) { return field_text(options.*field); };
  o.parameter.optional = true;
  o.parameter.default_value = "None";
  o.set = [name, field](std::string_view op, Options& options, const Value& v) {
    if (!std::holds_alternative<std::monostate>(v)) options.*field = Field<T>::get(op, name, v);
  };
  if constexpr (std::is_same_v<T, TensorView>)
    o.tensor.in = [field](Options& options) -> auto& { return options.*field; };
  return o;
}

// Null if it is none: a tensor, or a number that the checks refuse.
inline const int64_t* whole_number_of(const NumberOrTensor& value) {
  return value.number ? std::get_if<int64_t>(&*value.number) : nullptr;
}

// A whole number, or a tensor of them, that no check and no choice looks at, as a seed: one plan
// serves every number.
template <class Options>
Option<Options> free_number(std::string_view name, NumberOrTensor Options::* field,
                            ParameterDoc doc) {
  Option<Options> o = option(name, field, doc);
  o.free = field;
  o.add_to = [field](CallKey& key, const Options& options) {
    const NumberOrTensor& value = options.*field;
    const int64_t* number = whole_number_of(value);
    key.add(number != nullptr);
    number ? key.add_free(*number) : key.add(value);
  };
  return o;
}

// An option that leaves the choice to the cost model, as what is tuned knows one call alone.
template <class Options>
Option<Options> forbids_tuning(Option<Options> o) {
  o.forbids_tuning = true;
  return o;
}

template <class Options>
Option<Options> positional(Option<Options> o) {
  o.parameter.positional = true;
  return o;
}

}  // namespace tensorcraft::op

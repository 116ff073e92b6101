// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/number.hpp"
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/cuda/stream.hpp"
#include "tensorcraft/device/activation.h"
#include "tensorcraft/op/checks/value_or_tensor.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tensorcraft::op {

// One of the arguments that the caller names: a number, or the next of the call's arrays.
struct NamedValue {
  std::string_view name;                                            // as the caller spells it
  std::variant<std::monostate, bool, int64_t, double> number = {};  // monostate: an array
  // Is it the next array?
  bool is_array() const { return number.index() == 0; }
};
// All of them in the caller's order, borrowed.
using NamedValues = std::span<const NamedValue>;
// The name of the call's array `i`; "argument" if there are fewer.
std::string_view array_name(NamedValues values, size_t i);

// An argument of an operator when its type is known only at run time (Python, cases files, the
// command line). monostate means "not given".
using Value = std::variant<std::monostate, bool, int64_t, double, std::string_view, DType,
                           TensorView, Dims, std::vector<Dims>, NamedValues>;
// "a bool", "a list", ...: what it holds, for errors.
std::string_view kind_of(const Value& v);

// The kind of value that a parameter takes. A choice is one of some names, a text is any,
// integer_lists are integers or lists of them, and named_values give the call its inputs: keyword
// arguments in Python. Settings are names with whole numbers or words: a dict in Python,
// "tile_m=128, schedule=together" elsewhere, which is their Value.
enum class ParameterKind {
  tensor,
  boolean,
  integer,
  number,
  choice,
  dtype,
  text,
  integers,
  integer_lists,
  named_values,
  settings
};

// Dtypes that parameters take.
inline constexpr DType kFloatTypes[] = {DType::float32, DType::float16, DType::bfloat16};
inline constexpr DType kIndexTypes[] = {DType::int32, DType::int64};
inline constexpr DType kMaskTypes[] = {DType::bool_, DType::float32};
inline constexpr DType kFloat32[] = {DType::float32};
inline constexpr DType kInt8[] = {DType::int8};
inline constexpr DType kInt32[] = {DType::int32};
inline constexpr DType kInt64[] = {DType::int64};
inline constexpr DType kUint8[] = {DType::uint8};
inline constexpr DType kBool[] = {DType::bool_};

// The meaning of a parameter.
struct ParameterDoc {
  constexpr ParameterDoc() = default;
  // A text, and the dtypes that "%" in it names.
  constexpr ParameterDoc(std::string_view text, std::span<const DType> dtypes = {})
      : text(text), dtypes(dtypes) {}
  // A text that names no dtypes.
  constexpr ParameterDoc(const char* text) : text(text) {}
  std::string_view text;          // "%" is the names of the dtypes
  std::span<const DType> dtypes;  // of its arrays; empty: another argument says them
};
// The doc of a parameter whose arrays have one of these dtypes.
constexpr ParameterDoc takes(std::span<const DType> dtypes, std::string_view text) {
  return {text, dtypes};
}

// One parameter of an operator as every front end shows it.
struct Parameter {
  // Its name, what it means, and what it takes.
  std::string_view name;
  ParameterDoc doc;
  ParameterKind kind = ParameterKind::tensor;
  bool optional = false;      // None is accepted; an input of a fixed place is absent then
  bool positional = false;    // NumPy users write it by position
  bool or_tensor = false;     // of kind boolean or number: or a tensor of them
  bool named = false;         // an input that the caller names: named_values
  bool written = false;       // an input that becomes a result in place
  bool addresses = false;     // or a table of addresses, of int64 or uint64
  std::string default_value;  // as Python text; empty for a required input
  std::span<const std::string_view> choices;  // of kind choice
};

// An input that becomes a result in place, unless the call gives memory for it.
Parameter written(std::string_view name, ParameterDoc doc);
// Likewise, if the call gives it; else it is absent.
Parameter optional_written(std::string_view name, ParameterDoc doc);
// An input that may be absent.
Parameter optional_input(std::string_view name, ParameterDoc doc);
// Its text with the names of its dtypes.
std::string to_string(const ParameterDoc& doc);
// Returns the meaning of a parameter, with the words that it takes, and whether it is written in
// place.
std::string documented(const Parameter& parameter);

// One output, likewise.
struct OutputInfo {
  // Its name and what it is.
  std::string_view name;
  std::string_view doc;
  // The options by which a call asks for it, apart by spaces: each is true or given, or after "!"
  // neither. Empty: every call returns it.
  std::string_view when = {};
};

// The names of an enum option, in the order of its values 0, 1, ...; a name "none" is None in
// Python.
template <class E>
struct EnumNames;

// Conversion of a Value to the type of an option field. Each fails with kind type through
// wrong_type(), which names operator, argument and what was expected.
[[noreturn]] void wrong_type(std::string_view op, std::string_view name, std::string_view expected);
bool to_bool(std::string_view op, std::string_view name, const Value& v);
int64_t to_integer(std::string_view op, std::string_view name, const Value& v);
// A list of integers; one integer is a list of one.
Dims to_integers(std::string_view op, std::string_view name, const Value& v);
double to_number(std::string_view op, std::string_view name, const Value& v);
// A number, or a bool, as it is.
Number to_exact_number(std::string_view op, std::string_view name, const Value& v);
NumberOrTensor to_number_or_tensor(std::string_view op, std::string_view name, const Value& v);
BooleanOrTensor to_boolean_or_tensor(std::string_view op, std::string_view name, const Value& v);
// Kind value for a finite number that float32 has only as an infinity.
float to_float(std::string_view op, std::string_view name, const Value& v);
DType to_dtype(std::string_view op, std::string_view name, const Value& v);
int to_choice(std::string_view op, std::string_view name, std::span<const std::string_view> names,
              const Value& v);
const TensorView& to_tensor(std::string_view op, std::string_view name, const Value& v);
std::string_view to_text(std::string_view op, std::string_view name, const Value& v);
NamedValues to_named_values(std::string_view op, std::string_view name, const Value& v);
// The parts of settings, in their order. Kind value for one without a value.
struct Setting {
  std::string_view name, value;
};
std::vector<Setting> to_settings(std::string_view op, std::string_view name, const Value& v);

// How a field type of an Options struct appears as a parameter, and how a Value becomes one.
template <class T>
struct Field;

template <>
struct Field<bool> {
  static constexpr auto kind = ParameterKind::boolean;
  static bool get(std::string_view op, std::string_view name, const Value& v) {
    return to_bool(op, name, v);
  }
  static std::string text(bool v) { return v ? "True" : "False"; }
};
template <>
struct Field<int64_t> {
  static constexpr auto kind = ParameterKind::integer;
  static int64_t get(std::string_view op, std::string_view name, const Value& v) {
    return to_integer(op, name, v);
  }
  static std::string text(int64_t v) { return std::to_string(v); }
};
template <>
struct Field<Dims> {
  static constexpr auto kind = ParameterKind::integers;
  static Dims get(std::string_view op, std::string_view name, const Value& v) {
    return to_integers(op, name, v);
  }
  static std::string text(const Dims& v);
};
template <>
struct Field<NamedValues> {
  static constexpr auto kind = ParameterKind::named_values;
  static NamedValues get(std::string_view op, std::string_view name, const Value& v) {
    return to_named_values(op, name, v);
  }
  static std::string text(NamedValues) { return {}; }
};
template <>
struct Field<float> {
  static constexpr auto kind = ParameterKind::number;
  static float get(std::string_view op, std::string_view name, const Value& v) {
    return to_float(op, name, v);
  }
  static std::string text(float v);
};
template <>
struct Field<double> {
  static constexpr auto kind = ParameterKind::number;
  static double get(std::string_view op, std::string_view name, const Value& v) {
    return to_number(op, name, v);
  }
  static std::string text(double v);
};
template <>
struct Field<Number> {
  static constexpr auto kind = ParameterKind::number;
  static Number get(std::string_view op, std::string_view name, const Value& v) {
    return to_exact_number(op, name, v);
  }
  static std::string text(const Number& v);
};
template <>
struct Field<DType> {
  static constexpr auto kind = ParameterKind::dtype;
  static DType get(std::string_view op, std::string_view name, const Value& v) {
    return to_dtype(op, name, v);
  }
  static std::string text(DType v) { return std::string(to_string(v)); }
};
template <>
struct Field<std::string_view> {
  static constexpr auto kind = ParameterKind::text;
  static std::string_view get(std::string_view op, std::string_view name, const Value& v) {
    return to_text(op, name, v);
  }
  static std::string text(std::string_view v) { return '"' + std::string(v) + '"'; }
};
template <>
struct Field<TensorView> {
  static constexpr auto kind = ParameterKind::tensor;
  static TensorView get(std::string_view op, std::string_view name, const Value& v) {
    return to_tensor(op, name, v);
  }
};
template <>
struct Field<NumberOrTensor> {
  static constexpr auto kind = ParameterKind::number;
  static NumberOrTensor get(std::string_view op, std::string_view name, const Value& v) {
    return to_number_or_tensor(op, name, v);
  }
  static std::string text(const NumberOrTensor& v);
};
template <>
struct Field<BooleanOrTensor> {
  static constexpr auto kind = ParameterKind::boolean;
  static BooleanOrTensor get(std::string_view op, std::string_view name, const Value& v) {
    return to_boolean_or_tensor(op, name, v);
  }
  static std::string text(const BooleanOrTensor& v) { return Field<bool>::text(v.value); }
};
template <class E>
  requires std::is_enum_v<E>
struct Field<E> {
  static constexpr auto kind = ParameterKind::choice;
  static E get(std::string_view op, std::string_view name, const Value& v) {
    return E(to_choice(op, name, EnumNames<E>::names, v));
  }
  static std::string text(E v) {
    const std::string_view name = EnumNames<E>::names[size_t(v)];
    return name == "none" ? "None" : '"' + std::string(name) + '"';
  }
};

template <>
struct EnumNames<Activation> {
  static constexpr std::array<std::string_view, 5> names = {"none", "relu", "gelu", "gelu_tanh",
                                                            "silu"};
};

}  // namespace tensorcraft::op

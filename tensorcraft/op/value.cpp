// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/value.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/nearest.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

namespace tensorcraft::op {
namespace {

template <class T>
std::string shortest(T v) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), v).ptr;
  std::string text(buffer, end);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

}  // namespace

std::string_view array_name(NamedValues values, size_t i) {
  for (const NamedValue& v : values)
    if (v.is_array() && i-- == 0) return v.name;
  return "argument";
}

std::string_view kind_of(const Value& v) {
  constexpr std::string_view names[] = {
      "None",    "a bool",   "an int", "a float",         "a string",
      "a dtype", "a tensor", "a list", "a list of lists", "named arguments"};
  static_assert(std::size(names) == std::variant_size_v<Value>);
  return names[v.index()];
}

Parameter optional_input(std::string_view name, ParameterDoc doc) {
  Parameter parameter{name, doc};
  parameter.optional = true;
  return parameter;
}

Parameter optional_written(std::string_view name, ParameterDoc doc) {
  Parameter parameter = written(name, doc);
  parameter.optional = true;
  return parameter;
}

Parameter written(std::string_view name, ParameterDoc doc) {
  Parameter parameter{name, doc};
  parameter.written = true;
  return parameter;
}

std::string to_string(const ParameterDoc& doc) {
  std::string text(doc.text), names;
  for (size_t i = 0; i < doc.dtypes.size(); ++i) {
    const bool is_last = i + 1 == doc.dtypes.size();
    names += join(i == 0 ? "" : is_last ? " or " : ", ", doc.dtypes[i]);
  }
  if (const size_t at = text.find('%'); at != text.npos) text.replace(at, 1, names);
  return text;
}

std::string documented(const Parameter& parameter) {
  std::string text = to_string(parameter.doc);
  if (parameter.written) text += ", written in place";
  const char* before = ": ";
  for (const std::string_view choice : parameter.choices) {
    if (choice == "none") continue;  // None in Python, which is the default
    text.append(before).append("\"").append(choice).append("\"");
    before = ", ";
  }
  return text;
}

void wrong_type(std::string_view op, std::string_view name, std::string_view expected) {
  fail(ErrorKind::type, op, ": ", name, " must be ", expected);
}

bool to_bool(std::string_view op, std::string_view name, const Value& v) {
  if (const auto* x = std::get_if<bool>(&v)) return *x;
  wrong_type(op, name, join("a bool, got ", kind_of(v)));
}

int64_t to_integer(std::string_view op, std::string_view name, const Value& v) {
  if (const auto* x = std::get_if<int64_t>(&v)) return *x;
  wrong_type(op, name, join("an int, got ", kind_of(v)));
}

Dims to_integers(std::string_view op, std::string_view name, const Value& v) {
  if (const auto* x = std::get_if<Dims>(&v)) return *x;
  if (const auto* x = std::get_if<int64_t>(&v)) return {*x};
  wrong_type(op, name, join("integers, got ", kind_of(v)));
}

double to_number(std::string_view op, std::string_view name, const Value& v) {
  if (const auto* x = std::get_if<double>(&v)) return *x;
  if (const auto* x = std::get_if<int64_t>(&v)) return double(*x);
  wrong_type(op, name, join("a number, got ", kind_of(v)));
}

Number to_exact_number(std::string_view op, std::string_view name, const Value& v) {
  if (const bool* x = std::get_if<bool>(&v)) return *x;
  if (const auto* x = std::get_if<int64_t>(&v)) return *x;
  return to_number(op, name, v);
}

NumberOrTensor to_number_or_tensor(std::string_view op, std::string_view name, const Value& v) {
  if (const auto* x = std::get_if<TensorView>(&v)) return *x;
  if (const auto* x = std::get_if<int64_t>(&v)) return *x;
  if (const auto* x = std::get_if<double>(&v)) return *x;
  wrong_type(op, name, join("a number or a tensor, got ", kind_of(v)));
}

BooleanOrTensor to_boolean_or_tensor(std::string_view op, std::string_view name, const Value& v) {
  if (const auto* x = std::get_if<TensorView>(&v)) return *x;
  if (const auto* x = std::get_if<bool>(&v)) return *x;
  wrong_type(op, name, join("a bool or a tensor, got ", kind_of(v)));
}

float to_float(std::string_view op, std::string_view name, const Value& v) {
  const double x = to_number(op, name, v);
  constexpr double largest = std::numeric_limits<float>::max();
  if (std::isfinite(x) && std::abs(x) > largest)
    fail(ErrorKind::value, op, ": ", name, " must be at most ", largest,
         " in size, float32's largest number, got ", x);
  return float(x);
}

DType to_dtype(std::string_view op, std::string_view name, const Value& v) {
  if (const auto* x = std::get_if<DType>(&v)) return *x;
  wrong_type(op, name, join("a dtype, got ", kind_of(v)));
}

int to_choice(std::string_view op, std::string_view name, std::span<const std::string_view> names,
              const Value& v) {
  if (std::holds_alternative<std::monostate>(v) && names[0] == "none") return 0;
  const auto* text = std::get_if<std::string_view>(&v);
  if (!text) wrong_type(op, name, join("a string, got ", kind_of(v)));
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == *text) return int(i);
  std::string all;
  for (const auto n : names) all.append(all.empty() ? "" : ", ").append(n);
  fail(ErrorKind::value, op, ": ", name, " \"", *text, "\" is not known; there are ", all,
       did_you_mean(*text, names));
}

const TensorView& to_tensor(std::string_view op, std::string_view name, const Value& v) {
  if (const auto* x = std::get_if<TensorView>(&v)) return *x;
  wrong_type(op, name, join("a tensor, got ", kind_of(v)));
}

std::string_view to_text(std::string_view op, std::string_view name, const Value& v) {
  if (const auto* x = std::get_if<std::string_view>(&v)) return *x;
  wrong_type(op, name, join("text, got ", kind_of(v)));
}

NamedValues to_named_values(std::string_view op, std::string_view name, const Value& v) {
  if (const auto* x = std::get_if<NamedValues>(&v)) return *x;
  wrong_type(op, name, join("named arguments, got ", kind_of(v)));
}

std::vector<Setting> to_settings(std::string_view op, std::string_view name, const Value& v) {
  const auto* text = std::get_if<std::string_view>(&v);
  if (!text) wrong_type(op, name, join("settings, names with values, got ", kind_of(v)));
  const auto trimmed = [](std::string_view s) {
    while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
    while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
    return s;
  };
  std::vector<Setting> all;
  for (std::string_view rest = trimmed(*text); !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view item = trimmed(rest.substr(0, comma));
    const size_t equals = item.find('=');
    if (equals == item.npos)
      fail(ErrorKind::value, op, ": ", name, ": expected NAME=VALUE, got \"", item, "\"");
    all.push_back({trimmed(item.substr(0, equals)), trimmed(item.substr(equals + 1))});
    rest = trimmed(rest.substr(std::min(comma + 1, rest.size())));
  }
  return all;
}

std::string Field<Dims>::text(const Dims& v) {
  std::string text = "(";
  for (const int64_t item : v)
    text.append(text.size() > 1 ? ", " : "").append(std::to_string(item));
  return text + (v.rank() == 1 ? ",)" : ")");
}
std::string Field<float>::text(float v) { return shortest(v); }
std::string Field<double>::text(double v) { return shortest(v); }
std::string Field<Number>::text(const Number& v) {
  if (const bool* truth = std::get_if<bool>(&v)) return *truth ? "True" : "False";
  if (const auto* whole = std::get_if<int64_t>(&v)) return std::to_string(*whole);
  return shortest(std::get<double>(v));
}
std::string Field<NumberOrTensor>::text(const NumberOrTensor& v) {
  return v.number ? Field<Number>::text(*v.number) : "None";
}

}  // namespace tensorcraft::op

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/request.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/nearest.hpp"
#include "tensorcraft/core/to_number.hpp"

#include <algorithm>
#include <sstream>

namespace tensorcraft::diagnose {
namespace {

// A value with the words that an error names it by: "gemm: alpha".
struct Given {
  std::string name, text;
};

[[noreturn]] void refuse(const Given& given, std::string_view expected) {
  fail(ErrorKind::value, given.name, " must be ", expected, ", got \"", given.text, '"');
}

template <class T>
T parse_number(const Given& given, std::string_view text, std::string_view expected) {
  const auto value = to_number<T>(text);
  if (!value) refuse(given, expected);
  return *value;
}

DType parse_type(const Given& given, std::string_view text) {
  if (const auto dtype = parse_dtype(text)) return *dtype;
  std::vector<std::string_view> known;
  known.reserve(size_t(kNumDTypes));
  for (int i = 0; i < kNumDTypes; ++i) known.push_back(to_string(DType(i)));
  std::string names;
  for (const auto name : known) names.append(names.empty() ? "" : ", ").append(name);
  fail(ErrorKind::value, given.name, " must be a dtype (", names, "), got \"", given.text, '"',
       did_you_mean(text, known));
}

constexpr std::string_view kShapeForm =
    "a shape such as 4096x512, 8:int64, scalar, or 4096x512/520 if rows are 520 elements apart";

Dims parse_shape(const Given& given, std::string_view text) {
  Dims shape;
  if (text == "scalar") return shape;
  while (true) {
    const size_t end = text.find('x');
    const auto size = parse_number<int64_t>(given, text.substr(0, end), kShapeForm);
    if (size < 0 || shape.rank() == kMaxRank) refuse(given, kShapeForm);
    shape.push_back(size);
    if (end == text.npos) return shape;
    text.remove_prefix(end + 1);
  }
}

// A tensor at an address without memory.
TensorView parse_tensor(const Given& given, DType dtype, void* address, Device device) {
  std::string_view text = given.text;
  if (const size_t colon = text.find(':'); colon != text.npos) {
    dtype = parse_type(given, text.substr(colon + 1));
    text = text.substr(0, colon);
  }
  const size_t slash = text.find('/');
  const Dims shape = parse_shape(given, text.substr(0, slash));
  if (slash == text.npos) return {address, dtype, shape, device};
  Dims whole = shape;  // of which each row has the beginning
  const auto leading = parse_number<int64_t>(given, text.substr(slash + 1), kShapeForm);
  if (shape.rank() < 2 || leading < whole.back()) refuse(given, kShapeForm);
  whole[whole.rank() - 1] = leading;
  return {address, dtype, shape, contiguous_strides(whole), device};
}

Dims parse_integers(const Given& given) {
  constexpr std::string_view kForm = "whole numbers such as 0,2,1";
  Dims all;
  for (std::string_view text = given.text;;) {
    const size_t end = text.find(',');
    if (all.rank() == kMaxRank) refuse(given, kForm);
    all.push_back(parse_number<int64_t>(given, text.substr(0, end), kForm));
    if (end == text.npos) return all;
    text.remove_prefix(end + 1);
  }
}

// "1" and "1,2" are integers, "0:1,2:3" is a list of lists.
op::Value parse_integer_lists(const Given& given) {
  constexpr std::string_view kForm = "whole numbers such as 1 or 1,2, or lists such as 0:1,2:3";
  if (given.text.find(':') == given.text.npos) return parse_integers(given);
  std::vector<Dims> all(1);
  for (std::string_view text = given.text;;) {
    const size_t end = text.find_first_of(":,");
    if (all.back().rank() == kMaxRank || all.size() > kMaxRank) refuse(given, kForm);
    all.back().push_back(parse_number<int64_t>(given, text.substr(0, end), kForm));
    if (end == text.npos) return all;
    if (text[end] == ',') all.emplace_back();
    text.remove_prefix(end + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::variant<std::monostate, bool, int64_t, double> parse_value(const Given& given) {
  if (given.text == "True" || given.text == "False") return given.text == "True";
  if (const auto whole = to_number<int64_t>(given.text)) return *whole;
  return parse_number<double>(given, given.text, "a number of 64 bits, True or False");
}

// If a parameter takes a number as well, a tensor of one axis has its dtype, "8:float32".
bool is_tensor(const op::Parameter& p, std::string_view text) {
  if (!p.or_tensor) return p.kind == op::ParameterKind::tensor;
  const char* const marks = p.kind == op::ParameterKind::boolean ? "0123456789" : ":x";
  return text == "scalar" || text.find_first_of(marks) != text.npos;
}

bool parse_boolean(const Given& given) {
  for (const std::string_view yes : {"true", "True", "1"})
    if (given.text == yes) return true;
  for (const std::string_view no : {"false", "False", "0"})
    if (given.text == no) return false;
  refuse(given, "true or false");
}

std::string names_of(const std::vector<op::Parameter>& parameters) {
  std::string names;
  for (const op::Parameter& p : parameters) names.append(names.empty() ? "" : ", ").append(p.name);
  return names.empty() ? "none" : names;
}

}  // namespace

RequestText parse_request(std::string_view line) {
  std::istringstream words{std::string(line)};
  RequestText request;
  for (std::string word; words >> word;) {
    if (word == "--dtype" || word == "--option" || word == "--out" || word == "--variant") {
      std::string value;
      if (!(words >> value)) fail(ErrorKind::value, '"', line, "\": ", word, " needs a value");
      if (word == "--dtype") request.dtype = value;
      if (word == "--option") request.options.push_back(value);
      if (word == "--out") request.outputs.push_back(value);
      if (word == "--variant") request.variant = value;
    } else if (word.starts_with("--")) {
      fail(ErrorKind::value, '"', line, "\": there is no ", word,
           "; there are --dtype, --option, --out and --variant");
    } else if (request.op.empty()) {
      request.op = word;
    } else {
      request.shapes.push_back(word);
    }
  }
  if (request.op.empty()) fail(ErrorKind::value, '"', line, "\" names no operator");
  return request;
}

std::vector<op::NamedValue> parse_named_values(std::string_view name, std::string_view text) {
  std::vector<op::NamedValue> all;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = trimmed(text.substr(0, comma));
    const size_t equals = item.find('=');
    op::NamedValue& value = all.emplace_back(op::NamedValue{trimmed(item.substr(0, equals))});
    if (equals != item.npos)
      value.number = parse_value(
          {join(name, ": ", value.name), std::string(trimmed(item.substr(equals + 1)))});
    text = comma == text.npos ? std::string_view() : text.substr(comma + 1);
  }
  return all;
}

Request::Request(const op::Operator& op, const RequestText& text, const DeviceInfo& device)
    : op_(op), device_(device), variant_(text.variant) {
  const op::Description& d = op.description();
  const std::string name(d.name);
  const DType dtype = parse_type({name + ": dtype", text.dtype}, text.dtype);
  const auto may_end = [](const op::Parameter& p) { return p.optional && p.named; };
  const size_t most = d.inputs.size(),
               least = most - size_t(std::ranges::count_if(d.inputs, may_end));
  const auto own = size_t(std::ranges::count(d.inputs, false, &op::Parameter::named));
  if (text.shapes.size() < least || text.shapes.size() > most)
    fail(ErrorKind::value, name, ": takes ", least == most ? "" : join(least, " to "), most,
         d.inputs.size() == 1 ? " shape (" : " shapes (",
         names_of(own ? std::vector(d.inputs.begin(), d.inputs.begin() + long(own)) : d.inputs),
         own && own < most ? ", and one for each array that an option names), got " : "), got ",
         text.shapes.size());
  for (size_t i = 0; i < text.shapes.size(); ++i)
    if (text.shapes[i] == "none" && d.inputs[i].optional)
      inputs_.push_back(op::absent_input(device.device));
    else
      inputs_.push_back(parse_tensor({join(name, ": ", d.inputs[i].name), text.shapes[i]}, dtype,
                                     next_address(), device.device));
  options_.resize(d.options.size());
  for (const std::string& option : text.options) set_option(option, dtype);
  const size_t named = inputs_.size() - std::min(own, inputs_.size());
  for (size_t i = 0; i < options_.size(); ++i)
    if (d.options[i].kind == op::ParameterKind::named_values && named && options_[i].index() == 0)
      fail(ErrorKind::value, name, ": name the ", named, named == 1 ? " array" : " arrays",
           " as its expression does, such as --option ", d.options[i].name, "=g,u");
  const auto specs = op.infer({inputs_, options_, variant_});
  outputs_ = op::imagined_outputs(specs, inputs_, device.device);
  if (text.outputs.size() > specs.size())
    fail(ErrorKind::value, name, ": has ", specs.size(), specs.size() == 1 ? " output" : " outputs",
         ", got ", text.outputs.size(), " shapes of them");
  for (size_t i = 0; i < text.outputs.size(); ++i)
    outputs_[i] = parse_tensor({join(name, ": ", specs[i].name), text.outputs[i]}, specs[i].dtype,
                               next_address(), device.device);
}

void* Request::next_address() { return op::imagined_address(op::kImaginedInputs + num_tensors_++); }

void Request::set_option(const std::string& text, DType dtype) {
  const op::Description& d = op_.description();
  const size_t equals = text.find('=');
  if (equals == text.npos)
    fail(ErrorKind::value, d.name, ": an option is NAME=VALUE, got \"", text, '"');
  const auto found = std::ranges::find(d.options, text.substr(0, equals), &op::Parameter::name);
  std::vector<std::string_view> words;
  words.reserve(d.options.size());
  for (const op::Parameter& p : d.options) words.push_back(p.name);
  if (found == d.options.end())
    fail(ErrorKind::value, d.name, ": there is no option \"", text.substr(0, equals),
         "\"; there are: ", names_of(d.options), did_you_mean(text.substr(0, equals), words));
  const Given given{join(d.name, ": ", found->name), text.substr(equals + 1)};
  op::Value& value = options_[size_t(found - d.options.begin())];
  if (found->optional && (given.text == "None" || given.text == "none")) {
    value = std::monostate();
    return;
  }
  if (is_tensor(*found, given.text)) {
    value = parse_tensor(given, dtype, next_address(), device_.device);
    return;
  }
  switch (found->kind) {
    case op::ParameterKind::boolean:
      value = parse_boolean(given);
      break;
    case op::ParameterKind::integer:
      value = parse_number<int64_t>(given, given.text, "a whole number");
      break;
    case op::ParameterKind::integers:
      value = parse_integers(given);
      break;
    case op::ParameterKind::integer_lists:
      if (std::ranges::find(found->choices, std::string_view(given.text)) != found->choices.end())
        value = std::string_view(texts_.emplace_back(given.text));
      else
        value = parse_integer_lists(given);
      break;
    case op::ParameterKind::named_values:
      named_values_ = parse_named_values(given.name, texts_.emplace_back(given.text));
      value = op::NamedValues(named_values_);
      break;
    case op::ParameterKind::number:
      if (found->or_tensor)
        value = std::visit([](auto number) { return op::Value(number); }, parse_value(given));
      else
        value = parse_number<double>(given, given.text, "a number");
      break;
    case op::ParameterKind::dtype:
      value = parse_type(given, given.text);
      break;
    case op::ParameterKind::choice:
    case op::ParameterKind::text:
    case op::ParameterKind::settings:
      value = std::string_view(texts_.emplace_back(given.text));
      break;
    case op::ParameterKind::tensor:  // above
      break;
  }
}

op::Explanation Request::explain() const {
  return op_.explain(outputs_, {inputs_, options_, variant_}, device_);
}

}  // namespace tensorcraft::diagnose

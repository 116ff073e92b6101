// SPDX-License-Identifier: Apache-2.0
#include "bench/case.hpp"

#include "bench/results.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/nearest.hpp"
#include "tensorcraft/core/to_number.hpp"
#include "tensorcraft/ops/all.hpp"

#include <algorithm>
#include <set>

namespace tensorcraft::bench {
namespace {

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) text.append(text.empty() ? "" : separator).append(part);
  return text;
}

std::vector<std::string> arrays_of(std::string_view op) {
  std::vector<std::string> names;
  const op::Description& d = find_operator(op).description();
  names.reserve(d.inputs.size() + d.options.size());
  for (const op::Parameter& p : d.inputs) names.emplace_back(p.name);
  for (const op::Parameter& p : d.options)
    if (p.kind == op::ParameterKind::tensor || p.or_tensor) names.emplace_back(p.name);
  return names;
}

Json parse(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::value, "the suites are no JSON: ", error.what());
  }
}

// "{m}x{n}" with the numbers of one size in the place of their names.
std::string filled(std::string text, const Json& size) {
  for (const auto& [name, value] : size.items()) {
    const std::string word = '{' + name + '}', number = value.dump();
    for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + number.size()))
      text.replace(at, word.size(), number);
  }
  if (text.find('{') != text.npos)
    fail(ErrorKind::value, "the suites: \"", text, "\" has a name that no size gives");
  return text;
}

// A number for each array of this key of a group.
std::map<std::string, int64_t> numbers(const Json& group, const char* key, const Json& size) {
  std::map<std::string, int64_t> all;
  if (group.contains(key))
    for (const auto& [name, value] : group.at(key).items())
      all[name] = value.is_string() ? std::stoll(filled(value.get<std::string>(), size))
                                    : value.get<int64_t>();
  return all;
}

Case make_case(const std::string& line, const Json& group, const Json& size) {
  return {.request = diagnose::parse_request(filled(line, size)),
          .below = numbers(group, "below", size),
          .step = numbers(group, "step", size),
          .group = group.value("title", "")};
}

void add_group(std::vector<Case>& cases, std::set<std::string>& known, const Json& group) {
  const Json sizes = group.value("sizes", Json::array({Json::object()}));
  for (const Json& call : group.at("calls"))
    for (const Json& size : sizes)
      for (const Json& dtype : group.at("dtypes")) {
        const std::string line = call.get<std::string>() + " --dtype " + dtype.get<std::string>();
        Case c = make_case(line, group, size);
        if (known.insert(c.request.op + ' ' + c.name()).second) cases.push_back(std::move(c));
      }
}

}  // namespace

std::string Case::shape() const { return joined(request.shapes, " "); }
std::string Case::options() const { return joined(request.options, " "); }

std::string Case::name() const {
  const std::string with = options();
  return shape() + ' ' + request.dtype + (with.empty() ? "" : ' ' + with);
}

std::vector<std::string> suite_names(std::string_view text) {
  std::vector<std::string> names;
  const Json all = parse(text);
  for (const Json& group : all.at("groups"))
    if (const auto name = group.at("suite").get<std::string>();
        std::ranges::find(names, name) == names.end())
      names.push_back(name);
  names.emplace_back("all");
  return names;
}

std::vector<Case> suite_cases(std::string_view text, std::string_view suite) {
  const std::vector<std::string> names = suite_names(text);
  if (std::ranges::find(names, suite) == names.end())
    fail(ErrorKind::value, "there is no suite \"", suite, "\"; there are ", joined(names, ", "),
         did_you_mean(suite, std::vector<std::string_view>(names.begin(), names.end())));
  std::vector<Case> cases;
  std::set<std::string> known;
  const Json all = parse(text);
  try {
    for (const Json& group : all.at("groups"))
      if (suite == "all" || group.at("suite").get<std::string>() == suite)
        add_group(cases, known, group);
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::value, "the suites: ", error.what());
  }
  return cases;
}

std::vector<Case> cases_with(std::string_view command, std::string_view suite,
                             const std::string& text) {
  std::vector<Case> cases = suite_cases(kSuitesText, suite);
  std::erase_if(cases, [&](const Case& c) {
    return join(c.group, ": ", c.request.op, ' ', c.name()).find(text) == std::string::npos;
  });
  if (cases.empty())
    fail(ErrorKind::value, command, ": no case of ", suite, " has \"", text,
         "\" in its group, operator, shape, dtype or options");
  return cases;
}

std::map<std::string, int64_t> parse_numbers(std::string_view command, std::string_view op,
                                             std::string_view option,
                                             const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> numbers;
  if (texts.empty()) return numbers;  // whether there is such an operator is asked elsewhere
  const std::vector<std::string> arrays = arrays_of(op);
  for (const std::string_view text : texts) {
    const size_t equals = std::min(text.find('='), text.size());
    const auto number = to_number<int64_t>(text.substr(std::min(equals + 1, text.size())));
    if (number.value_or(0) < 1)
      fail(ErrorKind::value, command, ": ", option,
           " is NAME=NUMBER, the number at least 1, got \"", text, '"');
    const std::string name(text.substr(0, equals));
    if (std::ranges::find(arrays, name) == arrays.end())
      fail(ErrorKind::value, command, ": ", option, " names \"", name, "\", which is no array of ",
           op, "; give one of ", joined(arrays, ", "));
    numbers[name] = *number;
  }
  return numbers;
}

}  // namespace tensorcraft::bench

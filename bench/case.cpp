// SPDX-License-Identifier: Apache-2.0
#include "bench/case.hpp"

#include "bench/results.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/nearest.hpp"

#include <algorithm>
#include <set>

namespace tensorcraft::bench {
namespace {

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) text.append(text.empty() ? "" : separator).append(part);
  return text;
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

Case make_case(const std::string& line, const Json& group, const Json& size) {
  Case c{diagnose::parse_request(filled(line, size)), {}, group.value("title", "")};
  if (group.contains("below"))
    for (const auto& [name, value] : group.at("below").items())
      c.below[name] = value.is_string() ? std::stoll(filled(value.get<std::string>(), size))
                                        : value.get<int64_t>();
  return c;
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

}  // namespace tensorcraft::bench

// SPDX-License-Identifier: Apache-2.0
#include "bench/results.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/json_depth.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <utility>

namespace tensorcraft::bench {
namespace {

constexpr size_t kShownBytes = 60;  // of a value that is not accepted

// A value of a file and its place: "rows[3].median_us".
struct Node {
  const std::string& file;
  const Json* value;  // null if the key is missing
  std::string path;

  [[noreturn]] void refuse(std::string_view expected) const {
    std::string got = "nothing";
    if (value) got = value->dump(-1, ' ', true, Json::error_handler_t::replace);
    if (got.size() > kShownBytes) got = got.substr(0, kShownBytes) + "...";
    fail(ErrorKind::value, file, ": ", path, " must be ", expected, ", got ", got);
  }

  bool is_absent() const { return !value || value->is_null(); }

  Node at(const std::string& key) const {
    const auto found = value->find(key);
    return {file, found == value->end() ? nullptr : &*found, path.empty() ? key : path + "." + key};
  }

  Node at(size_t i) const { return {file, &(*value)[i], join(path, '[', i, ']')}; }

  const Json& object() const {
    if (!value || !value->is_object()) refuse("an object");
    return *value;
  }

  std::string text() const {
    if (!value || !value->is_string()) refuse("a string");
    return value->get<std::string>();
  }
  std::string text_or_empty() const { return is_absent() ? "" : text(); }
  std::string name() const {
    std::string found = text();
    if (found.empty()) refuse("a name");
    return found;
  }

  bool flag_or_false() const {
    if (is_absent()) return false;
    if (!value->is_boolean()) refuse("true or false");
    return value->get<bool>();
  }

  double positive() const {
    if (!value || !value->is_number() || value->get<double>() <= 0) refuse("a positive number");
    return value->get<double>();
  }
  double positive_or_zero() const {
    if (is_absent() || (value->is_number() && value->get<double>() == 0)) return 0;
    return positive();
  }
  int count_or_zero() const {
    const double number = positive_or_zero();
    if (number != std::floor(number) || number > std::numeric_limits<int>::max())
      refuse("a whole number below 2^31");
    return int(number);
  }
};

std::string contents_of(const std::string& file) {
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  in.peek();  // tells what is empty from what cannot be read, such as a folder
  const bool empty = in.eof() && !in.bad();
  std::ostringstream text;
  if (!empty && !(text << in.rdbuf()))
    fail(ErrorKind::io, file, " cannot be read: ", std::strerror(errno));
  return std::move(text).str();
}

// "it.json:3:14: is not JSON: syntax error while parsing value ...".
[[noreturn]] void fail_syntax(const std::string& file, const std::string& text,
                              const Json::parse_error& error) {
  const size_t at = std::min(error.byte ? error.byte - 1 : 0, text.size());
  const auto line = std::count(text.begin(), text.begin() + ptrdiff_t(at), '\n') + 1;
  const size_t start = at ? text.rfind('\n', at - 1) : std::string::npos;  // npos + 1 is 0
  std::string_view what = error.what();
  what = what.substr(0, what.find("; last read"));  // which may be no text at all
  fail(ErrorKind::value, file, ':', line, ':', at - (start + 1) + 1,
       ": is not JSON: ", what.substr(what.find(": ") + 2));
}

Json parsed(const std::string& text, const std::string& file) {
  check_json_depth(text, file);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    fail_syntax(file, text, error);
  } catch (const Json::exception& error) {  // a number that no double holds
    const std::string_view what = error.what();
    fail(ErrorKind::value, file, ": ", what.substr(what.find("] ") + 2));
  }
}

void check_schema(const Node& root) {
  root.object();
  const Node schema = root.at("schema");
  if (!schema.value)
    fail(ErrorKind::value, root.file, ": names no schema, so tensorcraft bench did not write it");
  if (*schema.value != kSchema) schema.refuse(join(kSchema, ", which is all this command reads"));
}

// Returns what is printed of a machine, a device or a timing: texts and numbers.
Json facts(const Node& node) {
  if (node.is_absent()) return Json::object();
  for (const auto& [key, value] : node.object().items())
    if (value.is_array() || (value.is_object() && key != "peak_tflops"))
      node.at(key).refuse("a string or a number");
  return *node.value;
}

Json device_of(const Node& node) {
  Json device = facts(node);
  if (device.empty()) return device;
  node.at("bandwidth_gbs").positive_or_zero();
  const Node peaks = node.at("peak_tflops");
  if (peaks.is_absent()) return device;
  for (const auto& [dtype, value] : peaks.object().items()) peaks.at(dtype).positive_or_zero();
  return device;
}

Row row_of(const Node& node) {
  node.object();
  Row row{.op = node.at("op").name(),
          .name = node.at("case").name(),
          .shape = node.at("shape").text_or_empty(),
          .dtype = node.at("dtype").text_or_empty(),
          .options = node.at("options").text_or_empty(),
          .group = node.at("group").text_or_empty(),
          .candidate = node.at("candidate").name(),
          .variant = node.at("variant").text_or_empty(),
          .note = node.at("note").text_or_empty(),
          .chosen = node.at("chosen").flag_or_false(),
          .timing = node.at("timing").text_or_empty(),
          .cache = node.at("cache").text_or_empty(),
          .p10_us = node.at("p10_us").positive_or_zero(),
          .p90_us = node.at("p90_us").positive_or_zero(),
          .runs = node.at("runs").count_or_zero(),
          .bytes = node.at("bytes").positive_or_zero(),
          .flops = node.at("flops").positive_or_zero(),
          .floor_us = node.at("floor_us").positive_or_zero(),
          .error = node.at("error").text_or_empty()};
  const Node median = node.at("median_us");
  row.median_us = row.error.empty() ? median.positive() : median.positive_or_zero();
  return row;
}

// Two figures for one thing have no ratio, so they are refused.
void check_new(const Row& row, const Row& before, const Node& node) {
  if (!is_same_case(row, before)) return;
  if (row.candidate == before.candidate && row.variant == before.variant)
    fail(ErrorKind::value, node.file, ": ", node.path, " measures ", row.op, ' ', row.name, " by ",
         row.candidate, row.variant.empty() ? "" : " ", row.variant, " a second time");
  if (row.chosen && before.chosen)
    fail(ErrorKind::value, node.file, ": ", node.path, " is a second chosen variant of ", row.op,
         ' ', row.name);
}

std::vector<std::string> skipped_of(const Node& list) {
  std::vector<std::string> skipped;
  if (list.is_absent()) return skipped;
  if (!list.value->is_array()) list.refuse("an array");
  for (size_t i = 0; i < list.value->size(); ++i) skipped.push_back(list.at(i).text());
  return skipped;
}

}  // namespace

Results parse_results(const std::string& text, const std::string& name) {
  const Json document = parsed(text, name);
  const Node root{name, &document, ""};
  check_schema(root);
  Results results{.title = root.at("title").text(),
                  .machine = facts(root.at("machine")),
                  .device = device_of(root.at("device")),
                  .timing = facts(root.at("timing")),
                  .rows = {},
                  .skipped = skipped_of(root.at("skipped"))};
  const Node rows = root.at("rows");
  if (!rows.value || !rows.value->is_array()) rows.refuse("an array");
  std::multimap<std::pair<std::string, std::string>, size_t> before;  // by operator and case
  for (size_t i = 0; i < rows.value->size(); ++i) {
    Row row = row_of(rows.at(i));
    const std::pair key(row.op, row.name);
    const auto [first, last] = before.equal_range(key);
    for (auto it = first; it != last; ++it) check_new(row, results.rows[it->second], rows.at(i));
    before.emplace(key, i);
    results.rows.push_back(std::move(row));
  }
  return results;
}

Results read_results(const std::string& file) { return parse_results(contents_of(file), file); }

}  // namespace tensorcraft::bench

// SPDX-License-Identifier: Apache-2.0
#include "cli/roofline.hpp"

#include <array>
#include <optional>

namespace tensorcraft::cli {
namespace {

// The source of a column's value: the file, the case, the row, or it is computed.
enum class From { file, problem, row, roof };
struct Column {
  const char* name;
  From from;
  const char* key;
};
constexpr std::array kColumns{
    Column{"file", From::file, "file"},
    Column{"op", From::problem, "op"},
    Column{"case", From::problem, "case"},
    Column{"dtype", From::problem, "dtype"},
    Column{"options", From::problem, "options"},
    Column{"cache", From::problem, "cache"},
    Column{"bound", From::problem, "bound"},
    Column{"bytes", From::problem, "bytes"},
    Column{"flops", From::problem, "flops"},
    Column{"flops_per_byte", From::roof, "intensity"},
    Column{"candidate", From::row, "candidate"},
    Column{"variant", From::row, "variant"},
    Column{"chosen", From::row, "chosen"},
    Column{"median_us", From::row, "median_us"},
    Column{"gbs", From::row, "gbs"},
    Column{"tflops", From::row, "tflops"},
    Column{"floor_us", From::problem, "floor_us"},
    Column{"of_floor", From::roof, "of_floor"},
    Column{"roof_gbs", From::roof, "gbs"},
    Column{"roof_tflops", From::roof, "tflops"},
};

// A positive number of a JSON object, or none.
std::optional<double> positive(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number() || found->get<double>() <= 0) return {};
  return found->get<double>();
}

// Returns what the device can do at a problem's operations for each byte, and how near a row comes.
Json roof_of(const Json& problem, const Json& row) {
  Json roof = Json::object();
  const auto bytes = positive(problem, "bytes"), flops = positive(problem, "flops"),
             floor = positive(problem, "floor_us"), median = positive(row, "median_us");
  if (bytes && flops) roof["intensity"] = *flops / *bytes;
  if (floor && median) roof["of_floor"] = *floor / *median;
  if (floor && bytes) roof["gbs"] = *bytes / *floor * 1e-3;
  if (floor && flops) roof["tflops"] = *flops / *floor * 1e-6;
  return roof;
}

std::string field(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (!value.is_string()) return value.dump();
  auto text = value.get<std::string>();
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

std::string line_of(const Json& file, const Json& problem, const Json& row) {
  const Json roof = roof_of(problem, row);
  std::string line;
  for (const Column& column : kColumns) {
    const Json& from = column.from == From::file      ? file
                       : column.from == From::problem ? problem
                       : column.from == From::row     ? row
                                                      : roof;
    if (&column != kColumns.data()) line += ',';
    if (const auto found = from.find(column.key); found != from.end()) line += field(*found);
  }
  return line + '\n';
}

}  // namespace

std::string roofline_csv(const Json& files) {
  std::string text;
  for (const Column& column : kColumns) text.append(text.empty() ? "" : ",").append(column.name);
  text += '\n';
  for (const Json& file : files)
    for (const Json& problem : file["cases"])
      for (const Json& row : problem["rows"])
        if (row.contains("median_us")) text += line_of(file, problem, row);
  return text;
}

}  // namespace tensorcraft::cli

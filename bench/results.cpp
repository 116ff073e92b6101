// SPDX-License-Identifier: Apache-2.0
#include "bench/results.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/diagnose/timing.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

namespace tensorcraft::bench {
namespace {

Json to_json(const Row& row) {
  return {{"op", row.op},
          {"case", row.name},
          {"shape", row.shape},
          {"dtype", row.dtype},
          {"options", row.options},
          {"group", row.group},
          {"candidate", row.candidate},
          {"variant", row.variant},
          {"note", row.note},
          {"chosen", row.chosen},
          {"timing", row.timing},
          {"cache", row.cache},
          {"median_us", row.median_us},
          {"p10_us", row.p10_us},
          {"p90_us", row.p90_us},
          {"runs", row.runs},
          {"bytes", row.bytes},
          {"flops", row.flops},
          {"floor_us", row.floor_us},
          {"gbs", row.gbs()},
          {"tflops", row.tflops()},
          {"error", row.error.empty() ? Json() : Json(row.error)}};
}

double to_seven_digits(double value) {
  char text[32];
  const char* const end =
      std::to_chars(text, std::end(text), value, std::chars_format::general, 7).ptr;
  std::from_chars(text, end, value);
  return value;
}

Json rounded(Json value) {
  if (value.is_structured()) {
    for (Json& one : value) one = rounded(std::move(one));
  } else if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number != std::floor(number)) return to_seven_digits(number);
  }
  return value;
}

// With a space after each colon and comma, as Python writes it. No text has a line's end in it.
std::string one_line(const Json& value) {
  std::string line;
  for (const char c : value.dump(0, ' ', false, Json::error_handler_t::replace))
    if (c != '\n')
      line += c;
    else if (line.back() == ',')
      line += ' ';
  return line;
}

std::string text_of(const Json& value) {
  if (!value.is_array() || value.empty() || !value[0].is_object()) return one_line(value);
  std::string lines;
  for (const Json& one : value) lines += join(lines.empty() ? "" : ",", "\n  ", one_line(one));
  return join('[', lines, "\n ]");
}

}  // namespace

void set_times(Row& row, std::vector<double> microseconds) {
  row.runs = int(microseconds.size());
  if (microseconds.empty()) return;
  const diagnose::Times times = diagnose::times_of(std::move(microseconds));
  row.median_us = times.median;
  row.p10_us = times.p10;
  row.p90_us = times.p90;
}

bool is_same_case(const Row& a, const Row& b) {
  return a.op == b.op && a.name == b.name && a.shape == b.shape && a.dtype == b.dtype &&
         a.options == b.options && a.cache == b.cache;
}

double ratio(const Row& row, const Row& peer) {
  const bool is_fair = row.is_measured() && peer.is_measured() && row.timing == peer.timing;
  return is_fair ? peer.median_us / row.median_us : 0;
}

double share_of_peak(const Row& row, const Json& device) {
  const double bandwidth = device.value("bandwidth_gbs", 0.0);
  if (!row.is_measured() || bandwidth <= 0 || row.candidate == "copy") return 0;
  const bool computes = row.floor_us > row.bytes / bandwidth / 1e3 * 1.01;  // files round
  return computes ? row.floor_us / row.median_us : 0;
}

std::vector<const Row*> peers_of(const Row& row, const std::vector<Row>& rows) {
  std::vector<const Row*> peers;
  for (const Row& other : rows)
    if (!other.is_ours() && other.is_measured() && is_same_case(other, row))
      peers.push_back(&other);
  return peers;
}

Json to_json(const Results& results) {
  Json rows = Json::array();
  for (const Row& row : results.rows) rows.push_back(to_json(row));
  return {{"schema", kSchema},         {"title", results.title},   {"machine", results.machine},
          {"device", results.device},  {"timing", results.timing}, {"rows", rows},
          {"skipped", results.skipped}};
}

std::string to_text(const Results& results) {
  const Json document = rounded(to_json(results));
  std::string lines;
  for (const auto& [key, value] : document.items())
    lines += join(lines.empty() ? "" : ",", "\n ", Json(key).dump(), ": ", text_of(value));
  return join('{', lines, "\n}\n");
}

}  // namespace tensorcraft::bench

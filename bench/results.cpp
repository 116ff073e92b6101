// SPDX-License-Identifier: Apache-2.0
#include "bench/results.hpp"

#include "tensorcraft/core/error.hpp"

#include <algorithm>

namespace tensorcraft::bench {
namespace {

Json to_json(const Row& row) {
  return {{"op", row.op},
          {"case", row.name},
          {"shape", row.shape},
          {"dtype", row.dtype},
          {"options", row.options},
          {"candidate", row.candidate},
          {"variant", row.variant},
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

Row parse_row(const Json& json) {
  Row row;
  json.at("op").get_to(row.op);
  json.at("case").get_to(row.name);
  json.at("shape").get_to(row.shape);
  json.at("dtype").get_to(row.dtype);
  json.at("options").get_to(row.options);
  json.at("candidate").get_to(row.candidate);
  json.at("variant").get_to(row.variant);
  json.at("chosen").get_to(row.chosen);
  json.at("timing").get_to(row.timing);
  json.at("cache").get_to(row.cache);
  json.at("median_us").get_to(row.median_us);
  json.at("p10_us").get_to(row.p10_us);
  json.at("p90_us").get_to(row.p90_us);
  json.at("runs").get_to(row.runs);
  json.at("bytes").get_to(row.bytes);
  json.at("flops").get_to(row.flops);
  json.at("floor_us").get_to(row.floor_us);
  if (!json.at("error").is_null()) json.at("error").get_to(row.error);
  return row;
}

}  // namespace

void set_times(Row& row, std::vector<double> microseconds) {
  row.runs = int(microseconds.size());
  if (microseconds.empty()) return;
  std::ranges::sort(microseconds);
  const size_t n = microseconds.size();
  row.median_us = (microseconds[(n - 1) / 2] + microseconds[n / 2]) / 2;
  row.p10_us = microseconds[n / 10];
  row.p90_us = microseconds[n * 9 / 10];
}

double ratio(const Row& row, const Row& peer) {
  return row.is_measured() && peer.is_measured() ? peer.median_us / row.median_us : 0;
}

std::vector<const Row*> peers_of(const Row& row, const std::vector<Row>& rows) {
  std::vector<const Row*> peers;
  for (const Row& other : rows)
    if (!other.is_ours() && other.is_measured() && other.op == row.op && other.name == row.name &&
        other.cache == row.cache)
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

Results parse_results(std::string_view text, std::string_view name) {
  try {
    const Json json = Json::parse(text);
    if (json.at("schema").get<int>() != kSchema)
      fail(ErrorKind::value, name, ": schema ", json.at("schema").dump(), " is not known; ",
           kSchema, " is");
    Results results{json.at("title"),
                    json.at("machine"),
                    json.at("device"),
                    json.at("timing"),
                    {},
                    json.value("skipped", std::vector<std::string>())};
    for (const Json& row : json.at("rows")) results.rows.push_back(parse_row(row));
    return results;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::value, name, " is no file of results: ", error.what());
  }
}

}  // namespace tensorcraft::bench

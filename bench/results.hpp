// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

// A run leaves this: the file that docs/benchmarks.md describes.
namespace tensorcraft::bench {

using Json = nlohmann::ordered_json;

inline constexpr int kSchema = 1;
inline constexpr std::string_view kOurs = "tensorcraft";
// How the error of a row starts that was not asked of this machine: no failure.
inline constexpr std::string_view kNotAvailable = "n/a: ";

// One candidate in one case. Times are 0 if there is an error.
struct Row {
  std::string op, name, shape, dtype, options;  // the case
  std::string group;                            // of the suite that the case is from
  std::string candidate, variant;               // variant: of ours
  std::string note;                             // what a peer says of how it computes
  bool chosen = false;                          // what a call without a variant runs
  std::string timing;                           // "events", "graph" or "wall"
  std::string cache;                            // "cold" or "warm"
  double median_us = 0, p10_us = 0, p90_us = 0;
  int runs = 0;
  double bytes = 0, flops = 0, floor_us = 0;
  std::string error;  // empty: none

  bool is_ours() const { return candidate == kOurs; }
  bool failed() const { return !error.empty() && !error.starts_with(kNotAvailable); }
  bool is_measured() const { return error.empty() && median_us > 0; }
  double gbs() const { return is_measured() ? bytes / median_us / 1e3 : 0; }
  double tflops() const { return is_measured() ? flops / median_us / 1e6 : 0; }
};

struct Results {
  std::string title;
  Json machine, device, timing;
  std::vector<Row> rows;
  std::vector<std::string> skipped;  // cases of a suite that this build has no operator for
};

// Median, p10 and p90 of times in microseconds.
void set_times(Row& row, std::vector<double> microseconds);
// Whether two rows measure the same problem. Only such rows are compared.
bool is_same_case(const Row& a, const Row& b);
// How many times as fast as `peer` a row of the same case is; 0 if one of them has no time, or if
// they were timed in different ways, which makes of two equal kernels two figures.
double ratio(const Row& row, const Row& peer);
// The part of the device's peak that a row reaches; 0 if bytes limit the case and not operations,
// or if the figures of the device are not known.
double share_of_peak(const Row& row, const Json& device);
// The peers of a row: measured rows of others in its case, in the order of the file.
std::vector<const Row*> peers_of(const Row& row, const std::vector<Row>& rows);

Json to_json(const Results& results);
// The text of a file: a line for each fact and each row. Fractions have seven digits, which
// is more than a measurement repeats; whole numbers stay whole.
std::string to_text(const Results& results);
// Reads what to_json() gives; what a comparison can do without may be missing. Kind value, with
// `name` and the line or the place in the document, for text that is no such file, or that has two
// figures of one thing or two chosen variants in a case.
Results parse_results(const std::string& text, const std::string& name);
// Parses a file's content likewise. Kind io if it cannot be read.
Results read_results(const std::string& file);

}  // namespace tensorcraft::bench

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cli/console.hpp"

#include <string>
#include <vector>

// What `tensorcraft bench` wrote, read back and compared.
namespace tensorcraft::cli {

// One row of a results file: a variant of ours, or a peer.
struct Measurement {
  std::string candidate, variant;
  std::string timing;  // "events", "graph", "wall": figures of two kinds are not comparable
  std::string error;   // why there is no figure; else empty
  bool chosen = false;
  double median_us = 0, p10_us = 0, p90_us = 0;
  double runs = 0, bytes = 0, flops = 0;

  bool is_ours() const { return candidate == "tensorcraft"; }
  bool has_figure() const { return error.empty(); }
};

// Everything that was measured on one problem: only these rows are compared.
struct ResultCase {
  std::string op, name, shape, dtype, options, cache;
  double floor_us = 0;            // no variant can be faster; 0 where that is not known
  std::vector<Measurement> rows;  // ours in the order of the ladder, then the peers

  // The variant that a call takes, or the only one measured; null where that has no figure.
  const Measurement* ours() const;
  // How ours was timed, else the first row that says it.
  std::string timing() const;
  // Whether a peer has a figure that ours can be compared with.
  bool is_compared(const Measurement& peer) const;
};

struct Results {
  std::string file, title;
  Json machine, device, timing;
  std::vector<ResultCase> cases;
  std::vector<std::string> skipped;  // cases that were not run, with the reason
};

// Kind io where the file cannot be read; kind value, with the line or the place in the document,
// where it is no results file of the schema this command writes.
Results read_results(const std::string& file);

// Cases with their ratios, peer's median over ours, and the geometric mean of those of each
// operator and peer. Figures have six digits.
Json summary_of(const Results& results);

}  // namespace tensorcraft::cli

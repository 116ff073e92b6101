// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "bench/results.hpp"
#include "cli/console.hpp"

#include <string>
#include <vector>

// Compares what `tensorcraft bench` wrote.
namespace tensorcraft::cli {

// Everything that was measured on one problem: only these rows are compared.
struct ResultCase {
  std::string op, name, shape, dtype, options, group, cache;
  double floor_us = 0;           // no variant can be faster; 0 if that is not known
  std::vector<bench::Row> rows;  // in the order of the file

  // The variant that a call takes, or the only one measured; null if that has no figure.
  const bench::Row* ours() const;
  // How ours was timed, else the first row that says it.
  std::string timing() const;
  // bench::ratio() of ours to a peer; 0 if there is none.
  double ratio_to(const bench::Row& peer) const;
};

// Cases with their ratios, peer's median over ours, and the geometric mean of those of each peer,
// by operator and by group of the suites. Figures have six digits. Kind value if `file` has no
// rows.
Json summary_of(const bench::Results& results, const std::string& file);

}  // namespace tensorcraft::cli

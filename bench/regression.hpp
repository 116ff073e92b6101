// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "bench/results.hpp"

namespace tensorcraft::bench {

// Says what became of one ratio, of ours to one peer in one case, since a baseline.
struct Change {
  enum class Kind { same, fell, only_now, only_before };
  Kind kind = Kind::same;
  std::string what;            // "softmax 8192x8192 bfloat16, chosen, against copy"
  double before = 0, now = 0;  // 0 if it is missing
};

// Every ratio of both, in the order of `now`, then those that are missing there. One fell if it is
// below (1 - tolerance) of what it was. A row that is chosen is held against the chosen one,
// whatever the variant; another against the row of its variant. A ratio that had a time and now has
// an error fell.
std::vector<Change> compare(const Results& now, const Results& before, double tolerance);

}  // namespace tensorcraft::bench

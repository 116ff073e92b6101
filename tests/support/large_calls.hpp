// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/support/cases.hpp"

#include <nlohmann/json.hpp>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

// Calls of every operator with as many elements as are asked for: the list "large" of the cases
// files. In it "rows" is the size of what is large; rows of the results depend on the same rows of
// the arguments alone, or on sums over rows that zeros do not change.
namespace tensorcraft::test {

class LargeCall {
 public:
  LargeCall(const nlohmann::json& entry, const op::Operator& op) : entry_(entry), op_(&op) {}
  const op::Operator& op() const { return *op_; }
  std::string name() const;
  // With this many elements, or a few more, in the largest tensor: the size of all tensors.
  int64_t bytes(int64_t elements) const;
  // Zeros but for some rows at both ends, in the middle and around 2^31 elements. Runs the variant
  // (empty: the best), and compares those rows with the reference, which gets no others. What is
  // wrong; empty if nothing is.
  std::string run(Device device, int64_t elements, std::string_view variant = {}) const;
  // Returns the variants that take the call.
  std::vector<std::string> variants(Device device, int64_t elements) const;
  friend void PrintTo(const LargeCall& call, std::ostream* out) { *out << call.name(); }

 private:
  Case with_rows(int64_t rows) const;
  int64_t rows_for(int64_t elements) const;
  nlohmann::json entry_;
  const op::Operator* op_;
};

std::vector<LargeCall> large_calls();

}  // namespace tensorcraft::test

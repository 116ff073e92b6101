// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/support/cases.hpp"

#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <vector>

// Calls that are wrong in one generated way.
namespace tensorcraft::test {

// A call of an operator. Its views borrow from a CaseRun or from a Scratch; whatever was changed,
// they describe memory that is there, or say something that can be seen to be wrong.
struct AnyCall {
  const op::Operator* op = nullptr;
  std::vector<TensorView> inputs, outputs;
  std::vector<op::Value> options;
  std::string variant;
  std::string change;           // what is wrong with it
  bool is_steep = false;        // rounding is amplified: results say nothing
  bool has_any_result = false;  // the contents are no valid ones, which no kernel can refuse

  op::Arguments arguments() const { return {inputs, options, variant}; }
};

// Memory for arguments that the case has none for: one for what is read, one for what is written.
class Scratch {
 public:
  static constexpr size_t kBytes = 1 << 16;
  static constexpr std::byte kPoison{0xff};
  Scratch();
  // Small numbers (inputs) or poison (outputs) under this layout; no data if it does not fit.
  void* place(DType dtype, const Dims& shape, const Dims& strides, bool is_output);
  // Nothing was written to the memory of outputs since poison().
  bool is_poisoned() const;
  void poison();

 private:
  std::unique_ptr<std::byte[]> input_, output_;
};

// A way to make a call wrong. False if it cannot be applied to this call; throws Error if a view
// that cannot exist is asked for.
using Random = std::mt19937_64;
using Mutation = bool (*)(AnyCall&, Random&, Scratch&);
struct NamedMutation {
  const char* name;
  Mutation apply;
};
const std::vector<NamedMutation>& mutations();

}  // namespace tensorcraft::test

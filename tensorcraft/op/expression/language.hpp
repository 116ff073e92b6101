// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/core/number.hpp"
#include "tensorcraft/device/expression/step.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

// The language of expressions: text to steps. Host only.
namespace tensorcraft::expression {

// A name of an expression stands for this: an array of a dtype, or a number.
struct Operand {
  std::string_view name;
  std::variant<DType, Number> value;
  std::string_view if_unused = "leave it out";  // what is said if the text has no such name
  bool may_be_unused = false;
};

// A typed expression. Input slots are the arrays in the order of the operands.
struct Program {
  static constexpr int kMaxSteps = 64;
  int num_inputs = 0, num_numbers = 0, num_steps = 0;
  std::array<DType, kMaxInputs> inputs{};
  std::array<DType, kMaxNumbers> number_types{};
  std::array<uint64_t, kMaxNumbers> numbers{};  // the bits of a float, or an int64_t
  std::array<Step, kMaxSteps> steps{};

  DType slot_type(int slot) const;
  DType out() const { return DType(steps[size_t(num_steps - 1)].dtype); }
};

// How long and how deep a text may be; a program has its own limits.
inline constexpr size_t kMaxText = 4096;
inline constexpr int kMaxDepth = 64;

// The program of a text whose result is `out_dtype`, if given. Every operand must be in it that may
// not be unused. Fails
// with kind value or type; the message begins with the argument and shows the text with a caret
// below the column.
Program compile_expression(std::string_view text, std::span<const Operand> operands,
                           std::optional<DType> out_dtype,
                           std::string_view argument = "elementwise");

}  // namespace tensorcraft::expression

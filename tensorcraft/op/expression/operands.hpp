// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/expression/language.hpp"
#include "tensorcraft/op/checks/named_operand.hpp"
#include "tensorcraft/op/value.hpp"

#include <span>
#include <string_view>
#include <vector>

// The arguments of a call as those of an expression.
namespace tensorcraft::expression {

// Appends names with the dtypes of the arrays that they stand for, in their order, and the values
// of numbers. Fails with kind value if there are too many, or not a name for each array.
void add_operands(std::vector<Operand>& operands, std::string_view op, op::NamedValues named,
                  std::span<const TensorView> arrays);

// A call from C++ in the registry's terms: names, and behind `inputs` the arrays among them.
struct NamedArguments {
  NamedArguments(NamedOperands operands, std::vector<TensorView> inputs = {});
  std::vector<op::NamedValue> named;
  std::vector<TensorView> arrays;
};

}  // namespace tensorcraft::expression

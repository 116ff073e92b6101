// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/expression/operands.hpp"

#include "tensorcraft/core/error.hpp"

#include <utility>

namespace tensorcraft::expression {
namespace {

constexpr size_t kMaxOperands = kMaxInputs + kMaxNumbers;

Number number_of(const op::NamedValue& v) {
  if (const bool* truth = std::get_if<bool>(&v.number)) return *truth;
  if (const int64_t* whole = std::get_if<int64_t>(&v.number)) return *whole;
  return std::get<double>(v.number);
}

}  // namespace

void add_operands(std::vector<Operand>& operands, std::string_view op, op::NamedValues named,
                  std::span<const TensorView> arrays) {
  if (operands.size() + named.size() > kMaxOperands)
    fail(ErrorKind::value, op, ": takes at most ", kMaxOperands - operands.size(),
         " arguments besides the text");
  size_t used = 0;
  for (const op::NamedValue& v : named) {
    if (!v.is_array())
      operands.push_back({v.name, number_of(v)});
    else if (used < arrays.size())
      operands.push_back({v.name, arrays[used++].dtype()});
    else
      fail(ErrorKind::value, op, ": operands: ", v.name, " needs an array, and there are ",
           arrays.size());
  }
  if (used < arrays.size())
    fail(ErrorKind::value, op, ": operands must name ", arrays.size(), " arrays, got ", used,
         " names; from text, --option operands=g,u names two");
}

NamedArguments::NamedArguments(NamedOperands operands, std::vector<TensorView> inputs)
    : arrays(std::move(inputs)) {
  named.reserve(operands.size());
  for (const NamedOperand& o : operands) {
    op::NamedValue& value = named.emplace_back(op::NamedValue{o.name});
    if (const auto* array = std::get_if<TensorView>(&o.value)) arrays.push_back(*array);
    if (const auto* truth = std::get_if<bool>(&o.value)) value.number = *truth;
    if (const auto* whole = std::get_if<int64_t>(&o.value)) value.number = *whole;
    if (const auto* real = std::get_if<double>(&o.value)) value.number = *real;
  }
}

}  // namespace tensorcraft::expression

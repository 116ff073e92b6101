// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <variant>

namespace tensorcraft {

// A named argument of an expression: an array, which is borrowed, or a number, which takes the
// dtype of the arrays it meets.
struct NamedOperand {
  // As the expression spells it, and what it stands for.
  std::string_view name;
  std::variant<TensorView, bool, int64_t, double> value;

  // An array, or a number of any arithmetic type.
  NamedOperand(std::string_view name, const TensorView& array) : name(name), value(array) {}
  NamedOperand(std::string_view name, std::same_as<bool> auto number) : name(name), value(number) {}
  NamedOperand(std::string_view name, std::floating_point auto number)
      : name(name), value(double(number)) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  NamedOperand(std::string_view name, T number) : name(name), value(int64_t(number)) {}
};
// The arguments of one call.
using NamedOperands = std::initializer_list<NamedOperand>;

}  // namespace tensorcraft

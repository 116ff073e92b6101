// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/number.hpp"
#include "tensorcraft/core/tensor_view.hpp"

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace tensorcraft {

// A number, or a tensor of numbers, which is borrowed; neither if it is not given.
struct NumberOrTensor {
  // At most one of them is there.
  std::optional<Number> number = {};
  std::optional<TensorView> tensor = {};

  // Not given, a number of any arithmetic type, or what a TensorView can be made of.
  NumberOrTensor() = default;
  NumberOrTensor(std::floating_point auto value) : number(double(value)) {}  // NOLINT
  template <std::integral T>
    requires(!std::is_same_v<T, bool>)
  NumberOrTensor(T value) : number(int64_t(value)) {}  // NOLINT
  template <class T>
    requires(std::is_convertible_v<const T&, TensorView> && !std::is_arithmetic_v<T>)
  NumberOrTensor(const T& view) : tensor(TensorView(view)) {}  // NOLINT
  bool is_given() const { return number || tensor; }
};

// A bool for all, or a tensor of them, which is borrowed.
struct BooleanOrTensor {
  // The bool counts if there is no tensor.
  bool value = false;
  std::optional<TensorView> tensor = {};

  // A bool, or what a TensorView can be made of.
  BooleanOrTensor() = default;
  BooleanOrTensor(std::same_as<bool> auto all) : value(all) {}  // NOLINT
  template <class T>
    requires(std::is_convertible_v<const T&, TensorView> && !std::is_arithmetic_v<T>)
  BooleanOrTensor(const T& view) : tensor(TensorView(view)) {}  // NOLINT
};

}  // namespace tensorcraft

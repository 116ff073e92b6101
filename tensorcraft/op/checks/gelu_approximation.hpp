// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/value.hpp"

#include <array>
#include <string_view>

namespace tensorcraft {

// gelu: the exact formula, or the one with tanh.
enum class GeluApproximation : int { none, tanh };

}  // namespace tensorcraft

template <>
struct tensorcraft::op::EnumNames<tensorcraft::GeluApproximation> {
  static constexpr std::array<std::string_view, 2> names = {"none", "tanh"};
};

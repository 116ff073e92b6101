// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/value.hpp"

#include <array>
#include <string_view>

namespace tensorcraft {

// Says how a gated product applies its gates.
enum class Gate : int { none, silu, gelu, gelu_tanh };

}  // namespace tensorcraft

template <>
struct tensorcraft::op::EnumNames<tensorcraft::Gate> {
  static constexpr std::array<std::string_view, 4> names = {"none", "silu", "gelu", "gelu_tanh"};
};

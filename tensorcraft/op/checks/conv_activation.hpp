// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/conv_activation.h"
#include "tensorcraft/op/value.hpp"

#include <array>
#include <string_view>

// The words that a user writes for activations of convolutions.
template <>
struct tensorcraft::op::EnumNames<tensorcraft::ConvActivation> {
  static constexpr std::array<std::string_view, 6> names = {"none", "relu", "relu6",
                                                            "gelu", "silu", "hard_swish"};
};

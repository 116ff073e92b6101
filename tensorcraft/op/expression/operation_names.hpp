// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/expression/operation.h"

#include <string_view>

namespace tensorcraft::expression {

// In the order of Operation's values, as device text spells them.
#define TC_NAME(name, ...) #name,
inline constexpr std::string_view kOperationNames[] = {TC_OPERATIONS(TC_NAME)};
#undef TC_NAME

constexpr std::string_view word(Operation operation) { return kOperationNames[size_t(operation)]; }

}  // namespace tensorcraft::expression

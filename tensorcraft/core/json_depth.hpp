// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace tensorcraft {

// Arrays and objects inside each other that a JSON text may have: what copies or prints a value
// calls itself for each level, which would end the stack.
inline constexpr int kMostJsonLevels = 64;

// Asked before a JSON text is parsed. Kind value, as "NAME:LINE:COLUMN: ...", if it has more
// levels.
void check_json_depth(std::string_view text, std::string_view name);

}  // namespace tensorcraft

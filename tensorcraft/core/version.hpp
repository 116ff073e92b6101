// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace tensorcraft {

// "0.1.0": the version of the library that is loaded.
std::string_view version();

}  // namespace tensorcraft

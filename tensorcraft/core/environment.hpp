// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace tensorcraft {

// A line for each variable whose name begins with TENSORCRAFT_ and that the library does not read,
// with the name that it is most likely a misspelling of. `environment` is what POSIX calls environ:
// "NAME=value" texts with a null at the end.
std::vector<std::string> unknown_variables(const char* const* environment);

}  // namespace tensorcraft

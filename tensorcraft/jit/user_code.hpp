// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string_view>

namespace tensorcraft::jit {

// Runs code of a user's own. What it throws reaches the caller; in place of what is no
// std::exception, which no caller can read, kind type that names it: "twice: throws int, ...".
void run_user_code(std::string_view name, const std::function<void()>& code);

}  // namespace tensorcraft::jit

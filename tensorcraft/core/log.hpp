// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/config.hpp"

#include <string_view>

namespace tensorcraft {

// Is a message of this level written? Ask before building a costly text.
bool log_enabled(LogLevel level) noexcept;

// Write one line to standard error, as "[time] [tensorcraft] [level] text". They never throw, so a
// destructor may call them. Safe from any thread.
void log_error(std::string_view text) noexcept;
void log_warn(std::string_view text) noexcept;
void log_info(std::string_view text) noexcept;
void log_debug(std::string_view text) noexcept;

// A warning that the process writes once for each key.
void log_warn_once(std::string_view key, std::string_view text) noexcept;

}  // namespace tensorcraft

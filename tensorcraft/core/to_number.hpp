// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace tensorcraft {

// The number that a text is, from its first character to its last, in any locale; nothing if it is
// none, or none that T holds.
template <class T>
std::optional<T> to_number(std::string_view text) {
  T value{};
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace tensorcraft

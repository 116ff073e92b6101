// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <ranges>

namespace tensorcraft {

// The integers 0, 1, ..., end - 1; none where end <= 0.
template <std::integral T>
constexpr auto irange(T end) {
  return std::views::iota(T(0), end < T(0) ? T(0) : end);
}

// The integers begin, ..., end - 1; none where end <= begin.
template <std::integral T>
constexpr auto irange(T begin, T end) {
  return std::views::iota(begin, end < begin ? begin : end);
}

}  // namespace tensorcraft

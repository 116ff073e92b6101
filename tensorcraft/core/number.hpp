// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <variant>

namespace tensorcraft {

// A number that takes the dtype of what it meets, as exact as it was written: every integer of 64
// bits stays itself.
using Number = std::variant<bool, int64_t, double>;

// The nearest double, of a bool 0 or 1.
inline double to_double(const Number& n) {
  return std::visit([](auto v) { return double(v); }, n);
}

}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <initializer_list>
#include <span>
#include <vector>

namespace tensorcraft::op {

// A list that stays when the process ends: other threads may still call operators then, so no
// object that a call reads is ever destroyed.
template <class T>
class Immortal : public std::span<const T> {
 public:
  Immortal() = default;
  Immortal(std::initializer_list<T> items) : Immortal(std::vector<T>(items)) {}
  Immortal(const std::vector<T>& items)  // NOLINT
      : std::span<const T>(copied(items), items.size()) {}
  operator std::vector<T>() const { return {this->begin(), this->end()}; }  // NOLINT

 private:
  static const T* copied(const std::vector<T>& items) {
    T* const copy = items.empty() ? nullptr : new T[items.size()];
    std::copy(items.begin(), items.end(), copy);
    return copy;
  }
};

}  // namespace tensorcraft::op

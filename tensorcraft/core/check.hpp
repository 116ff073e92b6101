// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/source_location.hpp"

#include <type_traits>

namespace tensorcraft {

// The place of a call: as the last parameter with default {}, it is the caller's line.
struct DebugInfo : std::source_location {
  // Implicit, so that a source_location is one.
  DebugInfo(std::source_location where = std::source_location::current())  // NOLINT
      : std::source_location(where) {}
};

// Throws kind internal: "Runtime check failed at FILE:LINE: MESSAGE", or, without arguments,
// "Runtime check failed at FILE:LINE in FUNCTION".
template <class... Args>
[[noreturn]] void panic(DebugInfo where, const Args&... args) {
  std::ostringstream text;
  text << "Runtime check failed at " << where.file_name() << ':' << where.line();
  if constexpr (sizeof...(Args) > 0) {
    ((text << ": ") << ... << args);
  } else {
    text << " in " << where.function_name();
  }
  throw Error(ErrorKind::internal, text.str(), where);
}

// Panic(args...): panic at the caller's line. A class, because a function cannot take a default
// argument after a pack.
template <class... Args>
struct Panic {
  // Never returns.
  explicit Panic(Args&&... args, DebugInfo where = {}) { panic(where, args...); }
};
template <class... Args>
Panic(Args&&...) -> Panic<Args...>;

// RuntimeCheck(condition, args...) and RuntimeCheck(where, condition, args...): panic with the
// joined args unless the condition holds. For the library's own invariants; an operator checks its
// arguments with TensorMatcher and fail().
template <class... Args>
struct RuntimeCheck {
  // Throws unless the condition holds.
  template <class Condition>
  explicit RuntimeCheck(Condition&& condition, Args&&... args, DebugInfo where = {}) {
    if (!condition) [[unlikely]] {
      panic(where, args...);
    }
  }
  template <class Condition>
  RuntimeCheck(DebugInfo where, Condition&& condition, Args&&... args) {
    if (!condition) [[unlikely]] {
      panic(where, args...);
    }
  }
};
template <class Condition, class... Args>
  requires(!std::is_base_of_v<std::source_location, std::remove_cvref_t<Condition>>)
RuntimeCheck(Condition&&, Args&&...) -> RuntimeCheck<Args...>;
template <class Condition, class... Args>
RuntimeCheck(DebugInfo, Condition&&, Args&&...) -> RuntimeCheck<Args...>;

}  // namespace tensorcraft

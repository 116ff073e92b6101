// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tensorcraft {

// Says what went wrong, in the words of the Python exceptions it becomes.
enum class ErrorKind {
  value,
  type,
  index,
  key,
  unsupported,
  out_of_memory,
  io,
  not_found,
  buffer,
  cancelled,
  timed_out,
  compile,
  device_lost,
  internal,
  axis,          // an axis is not there: both value and index in Python
  kernel_fault,  // the emulator saw a kernel do what no GPU allows
};

// "value", "out_of_memory", ...
std::string_view to_string(ErrorKind kind);

// The only exception type of the library. what() is the sentence for the user; where() is the
// caller's line if an operator, a Tensor or a view of one refused what it was given, else the line
// that threw it.
class Error : public std::runtime_error {
 public:
  // The message tells the user what went wrong, and where.
  Error(ErrorKind kind, const std::string& message,
        std::source_location where = std::source_location::current())
      : std::runtime_error(message), kind_(kind), where_(where) {}
  ErrorKind kind() const { return kind_; }
  const std::source_location& where() const { return where_; }
  // The text after the first ": ", or all of it; a view into this object.
  std::string_view root_cause() const {
    const std::string_view text = what();
    const size_t colon = text.find(": ");
    return colon == std::string_view::npos ? text : text.substr(colon + 2);
  }

 private:
  ErrorKind kind_;
  std::source_location where_;
};

// An ErrorKind with the place it was named at, so that fail() can take any number of parts.
struct KindAt {
  // Both parts, as fail() hands them on.
  ErrorKind kind;
  std::source_location where;
  KindAt(ErrorKind k, std::source_location w = std::source_location::current())  // NOLINT
      : kind(k), where(w) {}
};

// Joins parts as a stream prints them. Only for paths that already failed, and for cold ones.
template <class... Parts>
std::string join(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return std::move(text).str();
}

// Throws Error(kind) with the joined parts as its text.
template <class... Parts>
[[noreturn]] void fail(KindAt at, const Parts&... parts) {
  throw Error(at.kind, join(parts...), at.where);
}

// Gives what `body` gives; an Error that it throws names `where` instead of the library's line.
template <class Body>
decltype(auto) at_line(const std::source_location& where, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw Error(error.kind(), error.what(), where);
  }
}

}  // namespace tensorcraft

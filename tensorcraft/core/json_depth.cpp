// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/json_depth.hpp"

#include "tensorcraft/core/error.hpp"

#include <algorithm>

namespace tensorcraft {
namespace {

[[noreturn]] void fail_at(std::string_view text, size_t at, std::string_view name) {
  const std::string_view before = text.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t column = at - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  fail(ErrorKind::value, name, ':', line, ':', column, ": arrays and objects are nested more than ",
       kMostJsonLevels, " levels deep");
}

}  // namespace

void check_json_depth(std::string_view text, std::string_view name) {
  int levels = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"')
      in_string = !in_string;
    else if (in_string)
      i += c == '\\';  // what follows ends no string
    else if ((c == '[' || c == '{') && ++levels > kMostJsonLevels)
      fail_at(text, i, name);
    else if (c == ']' || c == '}')
      --levels;
  }
}

}  // namespace tensorcraft

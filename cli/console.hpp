// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::cli {

using Json = nlohmann::ordered_json;  // keys keep the order they are written in

enum class Color { green, yellow, red, bold };

// A command writes to this: text for people, or one JSON value.
class Console {
 public:
  bool json = false;
  // The help of a command, by the words that lead to it; kind value if there is no such command.
  std::function<std::string(const std::vector<std::string>&)> help_of;

  void print(std::string_view text);  // to standard output, with a line end
  void print_json(const Json& value);
  // Left-aligned columns; the first row is the head.
  void print_table(const std::vector<std::vector<std::string>>& rows);
  // With the terminal's colour if standard output is one.
  std::string colored(Color color, std::string_view text) const;

  // One line on standard error that the next call replaces; nothing if that is no terminal.
  void show_progress(size_t done, size_t total, std::string_view what);
  void end_progress();
};

// "3.2 GiB", "17.5 KiB", "12 B".
std::string readable_bytes(double bytes);
// "2026-11-21 14:42", in UTC.
std::string readable_time(int64_t seconds_since_1970);
// A number with four significant digits.
std::string readable_number(double value);
// "1 kernel", "2 kernels".
std::string counted(size_t count, std::string_view noun);
// "a, b, c".
std::string joined(const std::vector<std::string>& parts, std::string_view separator = ", ");

}  // namespace tensorcraft::cli

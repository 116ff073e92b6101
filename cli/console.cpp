// SPDX-License-Identifier: Apache-2.0
#include "cli/console.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <utility>

namespace tensorcraft::cli {
namespace {

constexpr int kBarCells = 24;

// Characters on the screen: bytes of UTF-8 that do not continue one.
size_t width_of(std::string_view text) {
  return size_t(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string formatted(const char* format, double value) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

}  // namespace

void Console::print(std::string_view text) { std::cout << text << '\n'; }

void Console::print_json(const Json& value) {
  // File names may hold bytes that are no UTF-8.
  std::cout << value.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

void Console::print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += &row == &rows[0] ? colored(Color::bold, row[i]) : row[i];
      if (i + 1 < row.size()) line.append(widths[i] - width_of(row[i]) + 2, ' ');
    }
    print(line);
  }
}

std::string Console::colored(Color color, std::string_view text) const {
  constexpr std::array<std::string_view, 4> kCodes = {"32", "33", "31", "1"};
  if (json || !isatty(STDOUT_FILENO)) return std::string(text);
  return "\033[" + std::string(kCodes.at(size_t(color))) + "m" + std::string(text) + "\033[0m";
}

void Console::show_progress(size_t done, size_t total, std::string_view what) {
  if (json || !isatty(STDERR_FILENO)) return;
  const int filled = total ? int(done * kBarCells / total) : kBarCells;
  std::cerr << "\r\033[K[" << std::string(size_t(filled), '#')
            << std::string(size_t(kBarCells - filled), '.') << "] " << done << '/' << total << ' '
            << what << std::flush;
}

void Console::end_progress() {
  if (!json && isatty(STDERR_FILENO)) std::cerr << "\r\033[K" << std::flush;
}

std::string readable_bytes(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {" B", " KiB", " MiB", " GiB", " TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return formatted(unit ? "%.1f" : "%.0f", bytes) + kUnits[unit];
}

std::string readable_time(int64_t seconds_since_1970) {
  const time_t time = seconds_since_1970;
  std::tm parts{};
  std::array<char, 32> text{};
  gmtime_r(&time, &parts);
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &parts);
  return text.data();
}

std::string readable_number(double value) { return formatted("%.4g", value); }

std::string counted(size_t count, std::string_view noun) {
  return std::to_string(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) text.append(text.empty() ? "" : separator).append(part);
  return text;
}

}  // namespace tensorcraft::cli

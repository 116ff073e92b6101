// SPDX-License-Identifier: Apache-2.0
// Writes docs/environment.md from the settings of the library, or with --check compares.
#include "tensorcraft/core/config.hpp"

#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace {

constexpr std::string_view kHead =
    R"(# Environment and configuration

Six variables are read once, at the first call that needs one; a variable that is set but empty counts as not set.
`TENSORCRAFT_CONFIG` names a file with one JSON object, by default `~/.config/tensorcraft/config.json`, which may be absent.
A variable wins over the file, the file over the default. A value that is not accepted, and a key that does not exist, are errors.

| key of the file | variable | accepted | default | meaning |
| --- | --- | --- | --- | --- |
)";

std::string page() {
  std::ostringstream text;
  text << kHead;
  for (const tensorcraft::Setting& s : tensorcraft::settings()) {
    text << "| `" << s.key << "` | ";
    if (!s.environment.empty()) text << '`' << s.environment << '`';
    text << " | " << s.accepted << " | " << s.default_text << " | " << s.meaning << " |\n";
  }
  text << "\nThis page is written by `tests/docs/environment_page.cpp`.\n";
  return text.str();
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = argc == 3 && std::string_view(argv[2]) == "--check";
  if (argc != 2 && !check) {
    std::cerr << "usage: environment_page PAGE [--check]\n";
    return 2;
  }
  if (check) {
    std::ifstream file(argv[1]);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (text == page()) return 0;
    std::cerr << argv[1] << " is not up to date: run " << argv[0] << ' ' << argv[1] << '\n';
    return 1;
  }
  std::ofstream file(argv[1]);
  file << page() << std::flush;
  return file ? 0 : 1;
}

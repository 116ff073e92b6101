// SPDX-License-Identifier: Apache-2.0
// Writes docs/environment.md from the settings of the library, or with --check compares.
#include "tensorcraft/core/config.hpp"
#include "tests/docs/page.hpp"

#include <sstream>
#include <string_view>

namespace {

constexpr std::string_view kHead =
    R"(# Environment and configuration

Variables are read once, at the first call that needs one; a variable that is set but empty counts as not set.
`TENSORCRAFT_CONFIG` names a file with one JSON object, by default `~/.config/tensorcraft/config.json`, which may be absent.
A variable wins over the file, the file over the default. A value that is not accepted, and a key that does not exist, are errors;
a variable whose name begins with `TENSORCRAFT_` and stands in no row below has no effect, and a warning says so.

In a path, `~` is the home folder. A relative path counts from the folder that the program is in when it reads its settings.

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
  return tensorcraft::test::write_page(argc, argv, [](const std::string&) { return page(); });
}

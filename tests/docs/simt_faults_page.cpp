// SPDX-License-Identifier: Apache-2.0
// Writes the list of planted faults into docs/simt.md, between its markers, or with --check
// compares.
#include "tests/simt/faults/fault.hpp"

#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

namespace {

using tensorcraft::test::Fault;

constexpr std::string_view kBegin = "<!-- faults -->\n", kEnd = "<!-- /faults -->";

std::string cell(const char* message) { return message ? std::string(message) : "-"; }

std::string table() {
  std::ostringstream text;
  text << "| fault | in | every build | ASan + UBSan | race build |\n"
          "| --- | --- | --- | --- | --- |\n";
  for (const auto& group : {tensorcraft::test::thread_faults(), tensorcraft::test::copy_faults(),
                            tensorcraft::test::hopper_faults()})
    for (const Fault& f : group) {
      const auto own = [&](const char* m) { return m == f.any ? "" : cell(m); };
      text << "| " << f.name << " | " << f.pattern << " | " << cell(f.any) << " | " << own(f.asan)
           << " | " << own(f.race) << " |\n";
    }
  return text.str();
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = argc == 3 && std::string_view(argv[2]) == "--check";
  if (argc != 2 && !check) {
    std::cerr << "usage: simt_faults_page PAGE [--check]\n";
    return 2;
  }
  std::ifstream file(argv[1]);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const size_t begin = page.find(kBegin), end = page.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos) {
    std::cerr << argv[1] << " has no place for the list\n";
    return 1;
  }
  const std::string written = page.substr(0, begin + kBegin.size()) + table() + page.substr(end);
  if (check && written == page) return 0;
  if (check) {
    std::cerr << argv[1] << " is not up to date: run " << argv[0] << ' ' << argv[1] << '\n';
    return 1;
  }
  std::ofstream to(argv[1]);
  to << written << std::flush;
  return to ? 0 : 1;
}

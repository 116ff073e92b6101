// SPDX-License-Identifier: Apache-2.0
// Writes the list of planted faults into docs/simt.md, between its markers, or with --check
// compares.
#include "tests/docs/page.hpp"
#include "tests/simt/faults/fault.hpp"

#include <sstream>
#include <string>
#include <string_view>

namespace {

using tensorcraft::test::Fault;

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
  return tensorcraft::test::write_page(argc, argv, [](const std::string& page) {
    return tensorcraft::test::with_section(page, "faults", table());
  });
}

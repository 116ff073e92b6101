// SPDX-License-Identifier: Apache-2.0
// Writes into docs/install.md, between its markers, from which GPU on each variant runs, or with
// --check compares. A variant runs on an architecture if it accepts one of the cases there.
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tests/docs/page.hpp"
#include "tests/support/cases.hpp"

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tensorcraft;

constexpr std::string_view kArchitectures[] = {"sm_80",  "sm_86",   "sm_89",
                                               "sm_90a", "sm_100a", "sm_120a"};

// By operator and variant: the architectures it runs on, as places in the list.
using Found = std::map<std::string, std::map<std::string, std::set<size_t>>>;

Found find() {
  Found found;
  for (const test::Case& c : test::all_cases()) {
    if (!c.has_tag("gate") && !c.has_tag("smoke") && !c.has_tag("conformance")) continue;
    for (size_t i = 0; i < std::size(kArchitectures); ++i)
      for (const auto& row : test::explain_case(c, device_info_of_arch(kArchitectures[i])).variants)
        if (row.accepted)
          found[std::string(c.op->description().name)][std::string(row.variant.name)].insert(i);
  }
  return found;
}

std::string table() {
  std::map<std::string, std::string> operators;  // by what runs where
  for (const auto& [op, variants] : find()) {
    std::map<std::string, std::string> rows;  // by architectures
    for (const auto& [variant, where] : variants) {
      std::string on(kArchitectures[*where.begin()]);
      if (where.size() == std::size(kArchitectures) - *where.begin())
        on += " or newer";
      else
        for (auto i = std::next(where.begin()); i != where.end(); ++i)
          on += join(", ", kArchitectures[*i]);
      std::string& names = rows[on];
      names += join(names.empty() ? "" : ", ", variant);
    }
    for (const auto& [on, names] : rows) {
      std::string& ops = operators[join(names, " | ", on)];
      ops += join(ops.empty() ? "" : ", ", '`', op, '`');
    }
  }
  std::map<std::string, std::string> sorted;
  for (const auto& [what, ops] : operators)
    sorted[ops + what] = join("| ", ops, " | ", what, " |\n");
  std::string text = "| operator | variants | GPU |\n| --- | --- | --- |\n";
  for (const auto& [key, row] : sorted) text += row;
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  return tensorcraft::test::write_page(argc, argv, [](const std::string& page) {
    return tensorcraft::test::with_section(page, "requirements", table());
  });
}

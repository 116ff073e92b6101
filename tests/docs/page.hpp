// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

// Programs that write a page of docs/ share this; with --check they compare the page with what they
// would write.
namespace tensorcraft::test {

// main() of such a program. `written` turns the page there is into the page there should be; what
// it throws ends the program with that message.
template <class Written>
int write_page(int argc, char** argv, const Written& written) {
  const bool check = argc == 3 && std::string_view(argv[2]) == "--check";
  if (argc != 2 && !check) {
    std::cerr << "usage: " << argv[0] << " PAGE [--check]\n";
    return 2;
  }
  std::ifstream file(argv[1]);
  const std::string before{std::istreambuf_iterator<char>(file), {}};
  std::string after;
  try {
    after = written(before);
  } catch (const std::exception& error) {
    std::cerr << argv[1] << ": " << error.what() << '\n';
    return 1;
  }
  if (check && after == before) return 0;
  if (check) {
    std::cerr << argv[1] << " is not up to date: run " << argv[0] << ' ' << argv[1] << '\n';
    return 1;
  }
  std::ofstream to(argv[1]);
  to << after << std::flush;
  return to ? 0 : 1;
}

// `page` with `text` between the markers <!-- name --> and <!-- /name -->.
inline std::string with_section(const std::string& page, const std::string& name,
                                const std::string& text) {
  const std::string open = "<!-- " + name + " -->\n", close = "<!-- /" + name + " -->";
  const size_t begin = page.find(open), end = page.find(close);
  if (begin == std::string::npos || end == std::string::npos)
    throw std::runtime_error("no place for " + name + ": the page needs the markers <!-- " + name +
                             " --> and <!-- /" + name + " -->");
  return page.substr(0, begin + open.size()) + text + page.substr(end);
}

}  // namespace tensorcraft::test

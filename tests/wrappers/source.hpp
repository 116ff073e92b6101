// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace tensorcraft::test {

// A file of the source tree: as built, or from its root on another machine.
inline std::string source_text(const std::string& path) {
  for (const std::string root : {TENSORCRAFT_SOURCE, "."}) {
    std::ifstream file(root + "/" + path);
    if (file) return {std::istreambuf_iterator<char>(file), {}};
  }
  ADD_FAILURE() << "there is no " << path;
  return {};
}

}  // namespace tensorcraft::test

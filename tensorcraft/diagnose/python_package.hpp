// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace tensorcraft::diagnose {

// The Python package as an interpreter of this machine sees it.
struct PythonPackage {
  std::string interpreter;  // empty if there is none
  std::string version;      // empty if it cannot be imported
  std::string place;        // its folder
  std::string problem;      // the last line of what the import said
};
// Asks the interpreter this library is installed under, else python3 of the search path.
PythonPackage find_python_package();

}  // namespace tensorcraft::diagnose

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace tensorcraft::cli {

// Runs a program in this one's environment, with its standard streams, and waits. Gives its exit
// code, as a shell would say it. An interrupt goes to the program too, which decides what it means.
// Kind not_found if it cannot be started.
int run_program(const std::vector<std::string>& words);

}  // namespace tensorcraft::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/expression/language.hpp"

#include <string>

namespace tensorcraft::expression {

// The steps of a program as device text that includes device/expression/compiled.cuh: values s0,
// s1, ... of element i, from inputs x0, x1, ... in memory's order and the numbers of `p`.
std::string steps_text(const Program& p);

}  // namespace tensorcraft::expression

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/support/cases.hpp"

namespace tensorcraft::test {

// What runs on the SIMT device: the cases with the tag `simt`, and small ones that a loop says
// better than a file: every pair of dtypes, epilogue, fusion and group that `naive` and the
// vectorized rungs are compiled for. Without those of types that an instrumented library leaves
// out.
std::vector<Case> simt_cases();

// Do both start the same kernels on as many blocks? What they work on may differ.
bool launches_the_same(const op::Plan& a, const op::Plan& b);

// What every row that accepts the case launches on the SIMT device; and what it launches there for
// large problems only, asked of a device that small ones fill. Nothing if the output is empty.
std::vector<op::Plan> plans_on_simt(const Case& c, const CaseRun& run);

}  // namespace tensorcraft::test

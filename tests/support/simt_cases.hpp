// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/support/cases.hpp"

namespace tensorcraft::test {

// Returns what runs on the emulator: the cases with the tag `simt`, and small ones that a loop
// says better than a file: every pair of dtypes, epilogue, fusion and group that `naive` and the
// vectorized rungs are compiled for. Without those of types that an instrumented library leaves
// out.
std::vector<Case> simt_cases();

// Up to 60 small calls of an operator that nobody wrote down: cases for the emulator whose
// numbers are drawn from the range of their sweep. The same ones for a seed, whatever other
// operators have; fewer if few are legal.
std::vector<Case> drawn_cases(const op::Operator& op, uint64_t seed);
// Returns what the usual run draws, whose kernels are compiled ahead; none in an instrumented
// library.
std::vector<Case> usual_drawn_cases();

// Do both start the same kernels on as many blocks? What they work on may differ.
bool launches_the_same(const op::Plan& a, const op::Plan& b);

// Returns what every row that accepts the case launches on the emulator; and what it launches
// there for large problems only, asked of a device that small ones fill. Nothing if the output is
// empty.
std::vector<op::Plan> plans_on_simt(const Case& c, const std::vector<TensorView>& outputs,
                                    const op::Arguments& arguments);

}  // namespace tensorcraft::test

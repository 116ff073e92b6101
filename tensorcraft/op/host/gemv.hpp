// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/host/gemm.hpp"

#include <cstdlib>

namespace tensorcraft::host {

// Up to so many rows of A, lines of B are read once for all of them.
constexpr int64_t kFewRows = 8;

// Are the elements of a column of B nearer in memory than those of a row?
inline bool columns_are_lines(const GemmProblem& g) {
  return std::abs(g.b.row) < std::abs(g.b.column);
}

// Whether D is one row or column, or a few rows and B lies by columns: then each element of a
// matrix serves few products, so memory sets the pace, and packing would only read it twice. What
// is batch-invariant may not ask for m: any number of rows then.
inline bool is_gemv(const GemmProblem& g) {
  if (g.batch_invariant) return columns_are_lines(g);
  return g.m == 1 || g.n == 1 || (g.m <= kFewRows && columns_are_lines(g));
}

// Computes the same as gemm() if is_gemv(), for a batch of one: the matrix is read in place, once
// for 64 rows.
void gemv(const GemmProblem& problem);

}  // namespace tensorcraft::host

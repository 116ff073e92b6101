// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/host/gemm.hpp"

namespace tensorcraft::host {

// Whether D is one row or one column: then each element of a matrix serves one product, so memory
// sets the pace, and packing would only read it twice.
inline bool is_gemv(const GemmProblem& g) { return g.m == 1 || g.n == 1; }

// The same as gemm() if is_gemv(), for a batch of one: the matrix is read once, in place.
void gemv(const GemmProblem& problem);

}  // namespace tensorcraft::host

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/jit/entry.hpp"
#include "tensorcraft/ops/gemm/params.h"
#include "tensorcraft/ops/gemm/problem.hpp"

#include <string>

// The expression that finishes sums, as kernels have it.
namespace tensorcraft::kernel::gemm {

// A matrix as kernels are given it.
Matrix matrix(const TensorView& t);

// Params with what an expression reads, and with its steps.
ExpressionParams expression_params(const Problem& q, const Params& params);
InterpretedParams interpreted_params(const Problem& q, const Params& params);

// A rung compiled with the expression of a call: device text that includes the rung's is made at
// its first use and kept. Calls that differ in numbers or names alone share it.
const jit::Rung& with_expression(const jit::Rung& rung, const Problem& q);

}  // namespace tensorcraft::kernel::gemm

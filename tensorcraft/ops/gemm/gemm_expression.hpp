// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/launch/plan.hpp"
#include "tensorcraft/ops/gemm/gemm.hpp"
#include "tensorcraft/ops/gemm/params.h"
#include "tensorcraft/ops/gemm/problem.hpp"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

// The expression that finishes sums, as kernels have it.
namespace tensorcraft::kernel::gemm {

// The expression of a checked call, its arrays broadcast to `shape`; none if there is no epilogue.
// keywords() is what arguments may be called without one.
std::optional<SumExpression> expression_of(const GemmOptions& options,
                                           std::span<const TensorView> arrays, const Dims& shape,
                                           std::vector<std::string_view> (*keywords)());

// A matrix as kernels are given it.
Matrix matrix(const TensorView& t);

// Params with what an expression reads, and with its steps.
ExpressionParams expression_params(const Problem& q, const Params& params);
InterpretedParams interpreted_params(const Problem& q, const Params& params);

// The kernel of a step with the expression of a call, compiled into the rung, or read by it if that
// is the kernel that the library holds for the emulator; returns which. Device text that
// includes the rung's is made at its first use and kept; calls that differ in numbers or names
// alone share it.
Expression set_expression(op::Step& step, const Problem& q, const DeviceInfo& device);

}  // namespace tensorcraft::kernel::gemm

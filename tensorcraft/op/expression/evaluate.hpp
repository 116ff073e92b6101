// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/op/expression/language.hpp"

#include <vector>

// Expressions on the host.
namespace tensorcraft::expression {

// A checked expression. Inputs are broadcast to the shape of out.
struct ExpressionProblem {
  Program program;
  TensorView out;
  std::vector<TensorView> inputs;
};

// Floats in float32, step after step on blocks over all cores.
void evaluate(const ExpressionProblem& q);
// The definition: each step in double, one after the other on whole tensors.
void evaluate_reference(const ExpressionProblem& q);
// One step of it; `parameter` is the operation's. An operation of one input repeats it.
void reference_step(Operation operation, const TensorView& out, const TensorView& a,
                    const TensorView& b, float parameter = 0);

}  // namespace tensorcraft::expression

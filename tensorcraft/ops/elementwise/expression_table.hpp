// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/elementwise/language.hpp"

#include <string>
#include <vector>

namespace tensorcraft::kernel::elementwise {

// A program on tensors: inputs are broadcast to the shape of out.
struct ExpressionProblem {
  Program program;
  TensorView out;
  std::vector<TensorView> inputs;
};

std::span<const op::Variant<ExpressionProblem>> expression_table();
// What the interpreting kernel is given.
InterpretedParams interpreted_params(const Program& program, const ExpressionParams& params);
op::Cost expression_cost(const ExpressionProblem& problem);

// Host rows.
void expression_cpu(const ExpressionProblem& problem);
void expression_reference(const ExpressionProblem& problem);

// The rungs of one program, as device text that is made at its first use and kept: programs that
// differ in numbers or names alone share it.
struct ExpressionRungs {
  jit::Rung fused, strided;
};
const ExpressionRungs& rungs_of(const Program& program);
// A program whose text the header of that name is, for tools that run kernels without a compiler;
// null where no expression made it.
const Program* program_of_header(std::string_view header);
// The text: a struct Expression and the two functions.
std::string device_text(const Program& program);

}  // namespace tensorcraft::kernel::elementwise

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/jit/entry.hpp"
#include "tensorcraft/op/expression/evaluate.hpp"
#include "tensorcraft/ops/elementwise/program.cuh"

#include <string>

namespace tensorcraft::kernel::elementwise {

// A checked call. Inputs are broadcast to the shape of out; an operation with fewer than two
// repeats the one before.
struct Problem {
  Operation operation;
  TensorView out, a, b;
  float alpha = 0;
  Number value = int64_t(0);  // of fill
};

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

// Returns the params of the interpreting kernel.
InterpretedParams interpreted_params(const Program& program, const ExpressionParams& params);

// The rungs of one program, as device text that is made at its first use and kept: programs that
// differ in numbers or names alone share it.
struct ExpressionRungs {
  const jit::Rung *fused = nullptr, *strided = nullptr;
};
const ExpressionRungs& rungs_of(const Program& program);
// A program whose text the header of that name is, for tools that run kernels without a compiler;
// null if no expression made it.
const Program* program_of_header(std::string_view header);
// The text: a struct Expression, and the rungs for it.
std::string device_text(const Program& program);

inline constexpr ConfigField kExpressionFields[] = {
    {"threads"}, {"vectors"}, {"shared"}, {"nested"}, {"wide"}};

}  // namespace tensorcraft::kernel::elementwise

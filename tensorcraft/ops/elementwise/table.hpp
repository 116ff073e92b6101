// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/elementwise/params.h"

namespace tensorcraft::kernel::elementwise {

// What every operator of this folder becomes. Inputs are broadcast to the shape of out; an
// operation with fewer than two inputs repeats the one before.
struct Problem {
  Operation operation;
  TensorView out, a, b;
  float alpha = 0;
  double value = 0;  // of fill
};

// As in device text.
std::string_view word(Operation operation);
// The name of the operator: gelu for both forms.
std::string_view name(Operation operation);

std::span<const op::Variant<Problem>> table();
op::Cost cost(const Problem& problem);

}  // namespace tensorcraft::kernel::elementwise

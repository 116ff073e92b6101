// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/op/launch/plan.hpp"

namespace tensorcraft::op {

// Adds a step in front that copies `from` to `to`, unless they are one. `copy` is the kernel of
// device/copy.cuh in the folder of an operator.
void add_copy(Plan& plan, const jit::Rung& copy, const TensorView& to, const TensorView& from);

}  // namespace tensorcraft::op

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/operator.hpp"
#include "tensorcraft/op/variant.hpp"

// Plans on the SIMT device, where a kernel runs only if its rung's list of instances has it.
namespace tensorcraft::op {

// The first kernel of a plan that is not compiled; null where all are.
const jit::KernelKey* not_on_simt(const Plan& plan);
// Turns the row down, with the Config in the reason, where its plan has no instance.
void require_simt_instance(Considered& row);
// Runs the kernels and returns when it is done. Kind unsupported where there is no instance.
void launch_on_simt(const Plan& plan);

}  // namespace tensorcraft::op

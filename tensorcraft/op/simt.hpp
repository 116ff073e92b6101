// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/operator.hpp"
#include "tensorcraft/op/variant.hpp"

// Plans on the SIMT device, which runs a kernel only if its rung's list of instances has it.
namespace tensorcraft::simt {
struct Instance;
}
namespace tensorcraft::op {

// The instances of a step's rung, and the one that serves it; null if there is none.
const std::vector<simt::Instance>& simt_instances(const Step& step);
const simt::Instance* simt_instance(const Step& step);
// The first step of a plan that is not compiled; null if all are.
const Step* not_on_simt(const Plan& plan);
// Makes the variant decline, with the Config in the reason, if its plan has no instance.
void require_simt_instance(Considered& variant);
// Runs the kernels and returns when they are done. Kind unsupported if there is no instance.
void launch_on_simt(const Plan& plan);

}  // namespace tensorcraft::op

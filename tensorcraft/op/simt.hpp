// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/operator.hpp"
#include "tensorcraft/op/variant.hpp"

// Plans on the SIMT device. A kernel comes from its rung's list of instances, or from a C++
// compiler as jit::host_kernel() says.
namespace tensorcraft::simt {
struct Instance;
}
namespace tensorcraft::op {

// The instances of a step's rung, and the one that serves it; null if there is none.
const std::vector<simt::Instance>& simt_instances(const Step& step);
const simt::Instance* simt_instance(const Step& step);
// Is the device the SIMT device, and does the library hold the step's kernel for it?
bool is_held(const Step& step, const DeviceInfo& device);
// The first step of a plan that is not compiled if there is no compiler; null if all can run.
const Step* not_on_simt(const Plan& plan);
// Makes the variant decline, with the kernel in the reason, if its plan cannot run.
void require_simt_instance(Considered& variant);
// Compiles what is missing, runs the kernels and returns when they are done. Errors as those of
// jit::host_kernel().
void launch_on_simt(const Plan& plan);

}  // namespace tensorcraft::op

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/launch/plan.hpp"

// Plans on the emulator. A kernel is compiled ahead, see simt/instance.hpp, or by a C++ compiler
// as jit::host_kernel() says.
namespace tensorcraft::simt {
struct Instance;
}
namespace tensorcraft::op {

struct Considered;  // explanation.hpp

// The kernel that is compiled ahead for it, of its rung's more general Config if there is one; null
// if none is.
const simt::Instance* simt_instance(const jit::KernelKey& kernel);
// Is the device the emulator, and is the step's kernel compiled ahead?
bool is_held(const Step& step, const DeviceInfo& device);
// The first step of a plan that is not compiled if there is no compiler; null if all can run.
const Step* not_on_simt(const Plan& plan);
// Makes the variant decline, with the kernel in the reason, if its plan cannot run.
void require_simt_instance(Considered& variant);
// Compiles what is missing, runs the kernels and returns when they are done. Errors as those of
// jit::host_kernel().
void launch_on_simt(const Plan& plan);

}  // namespace tensorcraft::op

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// Registers UserKernel, which tc.kernel makes, and KernelLaunch, which its subscript makes.
void register_kernel(nanobind::module_& m);

}  // namespace tensorcraft::python

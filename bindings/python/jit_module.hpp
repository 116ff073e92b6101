// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// Registers what tc.load_jit calls.
void register_jit_module(nanobind::module_& m);

}  // namespace tensorcraft::python

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// Registers what tc.tune calls.
void register_tune(nanobind::module_& m);

}  // namespace tensorcraft::python

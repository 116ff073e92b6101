// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// Operators as XLA calls them: one handler for all, which finds the operator's name and settings
// among the call's attributes.
void register_xla(nanobind::module_& m);

}  // namespace tensorcraft::python

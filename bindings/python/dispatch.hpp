// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// Registers what tc.dispatch calls.
void register_dispatch(nanobind::module_& m);

}  // namespace tensorcraft::python

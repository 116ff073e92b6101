// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// add_library and text_of_operators, from which tc.add_library is made.
void register_library(nanobind::module_& m);

}  // namespace tensorcraft::python

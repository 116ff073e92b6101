// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// A framework that has operators of its own asks the registry for these: parameters, and results of
// a call that is not made.
void register_schema(nanobind::module_& m);

}  // namespace tensorcraft::python

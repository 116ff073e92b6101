// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// Registers Event, and the waits for values in memory.
void register_event(nanobind::module_& m);

}  // namespace tensorcraft::python

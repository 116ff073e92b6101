// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// The memory of devices, which tensorcraft/memory.py shows.
void register_pool(nanobind::module_& m);

}  // namespace tensorcraft::python

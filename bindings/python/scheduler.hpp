// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// The scheduler that python/tensorcraft/_scheduler.py shows.
void register_scheduler(nanobind::module_& m);

}  // namespace tensorcraft::python

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// The folder of compiled kernels, which tensorcraft/cache.py shows.
void register_cache(nanobind::module_& m);

}  // namespace tensorcraft::python

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// The matrix that python/tensorcraft/sparse.py shows.
void register_sparse(nanobind::module_& m);

}  // namespace tensorcraft::python

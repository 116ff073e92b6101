// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// Reading files of weights, all at once and lazily; python/tensorcraft/_weights.py is over these.
void register_weights(nanobind::module_& m);

}  // namespace tensorcraft::python

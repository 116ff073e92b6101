// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// Registers what tc.pack_weight and tc.PackedWeight call.
void register_packed(nanobind::module_& m);

}  // namespace tensorcraft::python

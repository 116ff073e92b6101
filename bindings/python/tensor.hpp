// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// Registers DType and Tensor. Arithmetic, indexing and the rest of the NumPy-like surface are
// Python code over these (python/tensorcraft/_tensor.py).
void register_tensor(nanobind::module_& m);

}  // namespace tensorcraft::python

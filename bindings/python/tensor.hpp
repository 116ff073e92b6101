// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "arrays.hpp"

namespace tensorcraft::python {

// Registers tc.Tensor, DType, Stream and Event. Arithmetic, indexing and the rest of the NumPy-like
// surface are Python code over these (python/tensorcraft/_tensor.py).
void register_tensor(nb::module_& m);

}  // namespace tensorcraft::python

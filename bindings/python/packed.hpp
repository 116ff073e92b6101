// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/operator.hpp"

#include <nanobind/nanobind.h>

namespace tensorcraft::python {

namespace nb = nanobind;

// tc.gemm whose b is a tc.PackedWeight, by Python's code; null if it is none.
nb::object packed_product(const op::Operator& op, nb::tuple inputs, nb::tuple options,
                          nb::handle out, nb::handle stream, nb::handle variant, nb::handle device);
// Registers what tc.pack_weight and tc.PackedWeight call.
void register_packed(nanobind::module_& m);

}  // namespace tensorcraft::python

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

#include <cstddef>

namespace tensorcraft::python {

namespace nb = nanobind;

// The one way from Python to an operator: `index` is its place in operators(); inputs and options
// follow its description; the rest are the options every operator has.
nb::object call(size_t index, nb::tuple inputs, nb::tuple options, nb::handle out,
                nb::handle stream, nb::handle variant, nb::handle device);
// Where an operator is in operators(); kind key for a name of none.
size_t operator_index(nb::handle name);
// The Explanation of the same call as a dict; with `arch`, as if the arrays lay on such a GPU.
nb::dict explain(size_t index, nb::tuple inputs, nb::tuple options, nb::handle out,
                 nb::handle stream, nb::handle variant, nb::handle device, nb::handle arch);

}  // namespace tensorcraft::python

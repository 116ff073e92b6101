// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "memory.hpp"
#include "tensorcraft/core/device.hpp"

#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// A copy of a contiguous tensor on another device, at least one of them a GPU, by the library's
// engine: returns before the bytes are there. What uses the result waits as far as it must, and so
// does what writes `t`.
PyTensor transferred(const PyTensor& t, Device target);

// Registers TransferEngine.
void register_transfer(nb::module_& m);

}  // namespace tensorcraft::python

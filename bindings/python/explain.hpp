// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/operator.hpp"

#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// tc.explain() makes its result of this: each field by its name, and the text.
nanobind::dict to_dict(const op::Explanation& explanation);

}  // namespace tensorcraft::python

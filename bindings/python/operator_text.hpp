// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/operator.hpp"

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

// An operator of the registry as Python: written to a file when the package is built, and run by
// the package for an operator that a library adds.
namespace tensorcraft::python {

// The classes of its results and its function, with signature, types and docstring; `index` is its
// place in operators(), `example` a call for the docstring, or empty. pyi: the same as a stub.
void write_function(std::ostream& py, std::ostream& pyi, const op::Description& d, size_t index,
                    const std::string& example);
// Its line of the dict OPERATORS.
void write_row(std::ostream& py, const op::Description& d, size_t index);
// Its lines of the dict RESULTS, by operator and names of fields: what `call` makes of several
// results.
void write_results(std::ostream& py, const op::Description& d);
// The names of the classes of its results.
std::vector<std::string> result_names(const op::Description& d);
// Returns what _ops.py would hold, had the operator been there when it was written.
std::string text_of_added(const op::Description& d, size_t index);

}  // namespace tensorcraft::python

// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include "arguments.hpp"
#include "gil.hpp"
#include "operator_text.hpp"
#include "tensorcraft/ops/all.hpp"

#include <nanobind/stl/string.h>

#include <string>

namespace nb = nanobind;
using namespace nb::literals;

namespace tensorcraft::python {
namespace {

nb::list load(nb::handle path) {
  const std::string file = to_path(path);
  const op::OperatorList* added = nullptr;
  {
    const WithoutGil released;
    added = &add_library(file);
  }
  nb::list names;
  for (const op::Operator* o : *added) names.append(std::string(o->description().name));
  return names;
}

std::string text_of_operators(size_t begin) {
  const op::OperatorList& all = operators();
  std::string text;
  for (size_t i = begin; i < all.size(); ++i) text += text_of_added(all[i]->description(), i);
  return text;
}

}  // namespace

void register_library(nb::module_& m) {
  m.def("add_library", &load, "path"_a.none(),
        "Loads a library of operators into the registry and gives their names.");
  m.def("text_of_operators", &text_of_operators, "begin"_a,
        "The Python of the operators from a place in the registry on.");
}

}  // namespace tensorcraft::python

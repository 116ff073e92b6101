// SPDX-License-Identifier: Apache-2.0
// Writes _ops.py and _ops.pyi into the folder given: one Python function an operator, with its real
// signature, its types and a docstring, from the registry and the examples of the file given.
#include "operator_text.hpp"

#include "tensorcraft/ops/all.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>

namespace {

using tensorcraft::python::result_names;
using tensorcraft::python::write_function;
using tensorcraft::python::write_results;
using tensorcraft::python::write_row;

// The package has functions of its own for these, which take more than the operators.
constexpr std::string_view kWrittenOver[] = {"astype", "clip", "matmul"};

std::string public_names() {
  std::string s = "__all__ = [";
  const auto add = [&](std::string_view name) {
    if (std::ranges::find(kWrittenOver, name) == std::end(kWrittenOver))
      s.append("\"").append(name).append("\", ");
  };
  for (const auto* o : tensorcraft::operators()) {
    add(o->description().name);
    for (const auto alias : o->description().aliases) add(alias);
    for (const std::string& name : result_names(o->description())) add(name);
  }
  return s + "]\n";
}

// "tc.relu([1.0])", one a line, by operator.
std::map<std::string, std::string> read_examples(const char* path) {
  std::map<std::string, std::string> examples;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("tc.")) examples[line.substr(3, line.find('(') - 3)] = line;
  return examples;
}

constexpr const char* kHead = R"(# SPDX-License-Identifier: Apache-2.0
"""One function an operator, generated from the registry at build time."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ._registry import Operator
from ._registry import result_class as _result_class
from ._tensorcraft import call as _call
from ._typing import ArrayLike, DTypeLike, StreamLike


)";
constexpr const char* kStubHead = R"(# SPDX-License-Identifier: Apache-2.0
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

from numpy.typing import NDArray

from ._packed import PackedWeight
from ._registry import Operator
from ._tensorcraft import Tensor
from ._typing import ArrayLike, DTypeLike, Number, StreamLike

_Array = TypeVar("_Array")

)";

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: generate_python FOLDER EXAMPLES\n";
    return 2;
  }
  const std::filesystem::path folder(argv[1]);
  const auto examples = read_examples(argv[2]);
  std::ofstream py(folder / "_ops.py"), pyi(folder / "_ops.pyi");
  py << kHead;
  pyi << kStubHead;
  const auto& all = tensorcraft::operators();
  for (size_t i = 0; i < all.size(); ++i) {
    const tensorcraft::op::Description& d = all[i]->description();
    const auto example = examples.find(std::string(d.name));
    write_function(py, pyi, d, i, example == examples.end() ? "" : example->second);
  }
  py << public_names() << "OPERATORS = {\n";
  for (size_t i = 0; i < all.size(); ++i) write_row(py, all[i]->description(), i);
  py << "}\nRESULTS: dict[tuple[str, ...], type] = {\n";
  for (const auto* o : all) write_results(py, o->description());
  py << "}\n";
  pyi << public_names()
      << "\nOPERATORS: dict[str, Operator]\nRESULTS: dict[tuple[str, ...], type]\n";
  if (!py.flush() || !pyi.flush()) {
    std::cerr << "generate_python: cannot write to " << folder << "\n";
    return 1;
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Writes _ops.py and _ops.pyi into the folder given: one Python function an operator, with its real
// signature and docstring, from the registry.
#include "tensorcraft/ops/all.hpp"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

namespace {

using tensorcraft::op::Description;
using tensorcraft::op::Parameter;
using tensorcraft::op::ParameterKind;

std::string python_type(const Parameter& p) {
  std::string type;
  switch (p.kind) {
    case ParameterKind::tensor:
      type = "ArrayLike";
      break;
    case ParameterKind::boolean:
      type = "bool";
      break;
    case ParameterKind::integer:
      type = "int";
      break;
    case ParameterKind::integers:
      type = "int | Sequence[int]";
      break;
    case ParameterKind::integer_lists:
      type = "int | Sequence[int] | Sequence[Sequence[int]]";
      break;
    case ParameterKind::named_values:
      type = "ArrayLike";
      break;
    case ParameterKind::number:
      type = "float";
      break;
    case ParameterKind::dtype:
      type = "DTypeLike";
      break;
    case ParameterKind::text:
      type = "str";
      break;
    case ParameterKind::choice:
      for (const auto name : p.choices)
        if (name != "none" || !p.optional)  // else None says it
          type += (type.empty() ? "Literal[\"" : ", \"") + std::string(name) + "\"";
      type += "]";
      break;
  }
  return p.optional ? type + " | None" : type;
}

// The parameter that takes all other keyword arguments, which then are the inputs; null: none does.
const Parameter* named_values(const Description& d) {
  for (const Parameter& p : d.options)
    if (p.kind == ParameterKind::named_values) return &p;
  return nullptr;
}

std::string signature(const Description& d, bool typed) {
  std::string s;
  const auto add = [&](const Parameter& p, const std::string& value) {
    if (!s.empty()) s += ", ";
    s += p.name;
    if (typed) s += ": " + python_type(p);
    if (!value.empty()) s += typed ? " = " + value : "=" + value;
  };
  const auto value_of = [](const Parameter& p) {
    return p.kind == ParameterKind::dtype && p.default_value != "None" ? '"' + p.default_value + '"'
                                                                       : p.default_value;
  };
  const Parameter* const named = named_values(d);
  if (!named)
    for (const auto& p : d.inputs) add(p, {});
  for (const auto& p : d.options)
    if (p.positional) add(p, named ? "" : value_of(p));
  s += named ? ", /, *" : ", *";
  for (const auto& p : d.options)
    if (!p.positional && &p != named) add(p, value_of(p));
  s += typed ? ", out: ArrayLike | None = None, stream: Any = None, variant: str | None = None, "
               "device: str | None = None"
             : ", out=None, stream=None, variant=None, device=None";
  if (named) {
    s += ", **";
    s += named->name;
    if (typed) s += ": " + python_type(*named);
  }
  return s;
}

std::string docstring(const Description& d) {
  std::string s = std::string(d.summary) + "\n\n    " + std::string(d.details) + "\n\n    Args:\n";
  const auto add = [&](std::string_view name, std::string_view doc) {
    s.append("        ").append(name).append(": ").append(doc).append(".\n");
  };
  if (!named_values(d))
    for (const auto& p : d.inputs) add(p.name, documented(p));
  for (const auto& p : d.options) add(p.name, documented(p));
  add("out", "array to write the result into; it is returned");
  add("stream",
      "tc.Stream, integer handle or object with __cuda_stream__; default: the framework's current "
      "stream. "
      "Work is enqueued there and not waited for");
  std::string names;
  for (const auto& v : d.variants)
    if (names.find('"' + std::string(v.name) + '"') == std::string::npos)
      names.append(names.empty() ? "\"" : ", \"").append(v.name).append("\"");
  add("variant", "force one of " + names + "; default: the best that accepts");
  add("device", "where host arrays are computed; default: tc.default_device()");
  s += "\n    Returns:\n        ";
  for (const auto& o : d.outputs)
    s.append(&o == &d.outputs[0] ? "" : "; ").append(o.name).append(": ").append(o.doc);
  s += ".\n\n    Raises:\n        ValueError, TypeError: an argument does not fit; the text says "
       "which and what is accepted.\n"
       "        NotImplementedError: no variant accepts; the text has every reason.\n    ";
  return s;
}

std::string tuple_of(const std::vector<Parameter>& parameters) {
  std::string s = "(";
  for (const auto& p : parameters) s.append(p.name).append(", ");
  return s.size() > 1 ? s.substr(0, s.size() - 1) + ")" : "()";
}

void write_function(std::ostream& py, std::ostream& pyi, const Description& d, size_t index) {
  py << "def " << d.name << "(" << signature(d, false) << "):\n    \"\"\"" << docstring(d)
     << "\"\"\"\n";
  py << "    return _call(" << index << ", " << (named_values(d) ? "()" : tuple_of(d.inputs))
     << ", " << tuple_of(d.options) << ", out, stream, variant, device)\n\n\n";
  pyi << "def " << d.name << "(" << signature(d, true) << ") -> Any: ...\n";
}

void write_row(std::ostream& py, const Description& d, size_t index) {
  py << "    \"" << d.name << "\": Operator(" << index << ", \"" << d.name << "\", \"" << d.group
     << "\", " << d.name << ", (";
  for (const auto& t : d.dtypes) py << '"' << t << "\", ";
  py << "), (";
  for (const auto& v : d.variants)
    py << "(\"" << v.name << "\", \"" << to_string(v.device) << "\", \"" << v.idea << "\"), ";
  py << "), " << d.inputs.size() << ", (";
  for (const auto& p : d.options) py << '"' << p.name << "\", ";
  py << "), \"" << d.summary << "\", (";
  for (const auto a : d.aliases) py << '"' << a << "\", ";
  py << ")),\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: generate_python FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder(argv[1]);
  std::ofstream py(folder / "_ops.py"), pyi(folder / "_ops.pyi");
  py << "# SPDX-License-Identifier: Apache-2.0\n\"\"\"One function an operator, generated from the "
        "registry at build time.\"\"\"\n"
     << "from ._registry import Operator\n"
     << "from ._tensorcraft import call as _call\n\n\n";
  pyi << "# SPDX-License-Identifier: Apache-2.0\nfrom collections.abc import Sequence\nfrom typing "
         "import Any, Literal\n\nfrom "
         "._registry import Operator\nfrom ._typing import "
         "ArrayLike, DTypeLike\n\n";
  const auto& all = tensorcraft::operators();
  for (size_t i = 0; i < all.size(); ++i) {
    const Description& d = all[i]->description();
    write_function(py, pyi, d, i);
    for (const auto alias : d.aliases) {
      py << alias << " = " << d.name << "\n\n\n";
      pyi << alias << " = " << d.name << "\n";
    }
  }
  const auto names = [&] {
    std::string s = "__all__ = [";
    for (const auto* o : all) {
      s.append("\"").append(o->description().name).append("\", ");
      for (const auto alias : o->description().aliases) s.append("\"").append(alias).append("\", ");
    }
    return s + "]\n";
  }();
  py << names << "OPERATORS = {\n";
  pyi << names;
  for (size_t i = 0; i < all.size(); ++i) write_row(py, all[i]->description(), i);
  py << "}\n";
  pyi << "\nOPERATORS: dict[str, Operator]\n";
  if (!py.flush() || !pyi.flush()) {
    std::cerr << "generate_python: cannot write to " << folder << "\n";
    return 1;
  }
  return 0;
}

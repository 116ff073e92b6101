// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/all.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/nearest.hpp"
#include "tensorcraft/ops/registry.hpp"

#include <algorithm>

namespace tensorcraft {

const op::OperatorList& operators() {
  static const auto& all = *new op::OperatorList([] {  // leaked, as the operators are
    op::OperatorList list;
#define TC_ADD_FOLDER(folder) \
  for (const op::Operator* o : ops::folder()) list.push_back(o);
    TC_OPERATOR_FOLDERS(TC_ADD_FOLDER)
#undef TC_ADD_FOLDER
    return list;
  }());
  return all;
}

const op::Operator& find_operator(std::string_view name) {
  for (const op::Operator* o : operators()) {
    const auto& d = o->description();
    if (d.name == name || std::find(d.aliases.begin(), d.aliases.end(), name) != d.aliases.end())
      return *o;
  }
  std::vector<std::string_view> names;
  for (const op::Operator* o : operators()) {
    names.push_back(o->description().name);
    for (const auto alias : o->description().aliases) names.push_back(alias);
  }
  const std::string guess = did_you_mean(name, names);
  fail(ErrorKind::key, "no operator is named \"", name, '"', guess.empty() ? ";" : guess,
       " tensorcraft ops lists all");
}

}  // namespace tensorcraft

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/all.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/nearest.hpp"
#include "tensorcraft/ops/registry.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

namespace tensorcraft {
namespace {

const op::OperatorList& own_operators() {
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

// Null: nothing was added. Lists before the last one are leaked too, as callers may read them.
constinit std::atomic<const op::OperatorList*> extended = nullptr;
constinit std::mutex adding;

const op::Operator* find(const op::OperatorList& all, std::string_view name) {
  for (const op::Operator* o : all) {
    const auto& d = o->description();
    if (d.name == name || std::ranges::find(d.aliases, name) != d.aliases.end()) return o;
  }
  return nullptr;
}

}  // namespace

const op::OperatorList& operators() {
  const op::OperatorList* const more = extended.load(std::memory_order_acquire);
  return more ? *more : own_operators();
}

bool add_operators(const op::OperatorList& added) {
  const std::lock_guard lock(adding);
  auto all = std::make_unique<op::OperatorList>(operators());
  for (const op::Operator* o : added) {
    const op::Description& d = o->description();
    std::vector<std::string_view> names = d.aliases;
    names.push_back(d.name);
    for (const std::string_view name : names)
      if (find(*all, name))
        fail(ErrorKind::value, "add_operators: there is an operator named ", name, " already");
    all->push_back(o);
  }
  extended.store(all.release(), std::memory_order_release);
  return true;
}

const op::Operator& find_operator(std::string_view name) {
  if (const op::Operator* const found = find(operators(), name)) return *found;
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

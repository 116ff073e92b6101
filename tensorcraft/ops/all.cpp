// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/all.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/nearest.hpp"
#include "tensorcraft/core/version.hpp"
#include "tensorcraft/ops/registry.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>

namespace tensorcraft {
namespace {

// A list that does not stay leaves operators behind, which nobody sees.
op::OperatorList* list_operators() {
  auto list = std::make_unique<op::OperatorList>();
#define TC_ADD_FOLDER(folder) \
  for (const op::Operator* o : ops::folder()) list->push_back(o);
  TC_OPERATOR_FOLDERS(TC_ADD_FOLDER)
#undef TC_ADD_FOLDER
  return list.release();
}
const op::OperatorList& own_operators() {
  static constinit FirstMade<const op::OperatorList, list_operators> all;
  return *all;
}

// Null: nothing was added. Lists before the last one are leaked too, as callers may read them.
constinit std::atomic<const op::OperatorList*> extended = nullptr;

std::mutex& adding() {
  static constinit FirstMade<ForkSafeMutex> one;
  return *one;
}

const op::Operator* find(const op::OperatorList& all, std::string_view name) {
  for (const op::Operator* o : all) {
    const auto& d = o->description();
    if (d.name == name || std::ranges::find(d.aliases, name) != d.aliases.end()) return o;
  }
  return nullptr;
}

void refuse_taken(const op::OperatorList& all, std::string_view name) {
  if (find(all, name))
    fail(ErrorKind::value, "add_operators: an operator is named \"", name,
         "\" already; give yours another name");
}

template <class Function>
Function* symbol(void* library, const char* name, const std::string& path) {
  if (void* const found = dlsym(library, name)) return reinterpret_cast<Function*>(found);
  fail(ErrorKind::value, "add_library: ", path, " has no function ", name,
       "; make the library with tensorcraft_add_operator() of the CMake package");
}

}  // namespace

const op::OperatorList& operators() {
  const op::OperatorList* const more = extended.load(std::memory_order_acquire);
  return more ? *more : own_operators();
}

void add_operators(const op::OperatorList& added) {
  const std::lock_guard lock(adding());
  auto all = std::make_unique<op::OperatorList>(operators());
  for (const op::Operator* o : added) {
    if (std::ranges::find(*all, o) != all->end()) continue;
    const op::Description& d = o->description();
    refuse_taken(*all, d.name);
    for (const std::string_view alias : d.aliases) refuse_taken(*all, alias);
    all->push_back(o);
  }
  extended.store(all.release(), std::memory_order_release);
}

const op::OperatorList& add_library(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    fail(ErrorKind::not_found, "add_library: there is no file \"", path, '"');
  // An absolute path: a bare name would be looked for in the system's folders.
  const std::string file = std::filesystem::absolute(path).string();
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(ErrorKind::value, "add_library: cannot load ", path, ": ", dlerror());
  const auto built_for = symbol<const char*()>(library, "tensorcraft_built_for", path);
  if (built_for() != version())
    fail(ErrorKind::value, "add_library: ", path, " was built for tensorcraft ", built_for(),
         ", this is ", version(), "; build it again with the package of this version");
  const op::OperatorList& added =
      *symbol<const op::OperatorList*()>(library, "tensorcraft_operators", path)();
  add_operators(added);
  return added;
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

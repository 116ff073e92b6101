// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/environment.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/nearest.hpp"

#include <algorithm>
#include <string_view>

namespace tensorcraft {
namespace {

constexpr std::string_view kPrefix = "TENSORCRAFT_";

// The names behind the prefix, so that what all have in common makes no two of them alike.
std::vector<std::string_view> known_names() {
  std::vector<std::string_view> names = {"CONFIG"};
  for (const Setting& setting : settings())
    if (!setting.environment.empty()) names.push_back(setting.environment.substr(kPrefix.size()));
  return names;
}

// The key of the file that has no variable and is meant by this name; empty if there is none.
std::string_view key_of_file(std::string_view name) {
  std::string key(name);
  for (char& c : key)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  for (const Setting& setting : settings())
    if (setting.environment.empty() && setting.key == key) return setting.key;
  return {};
}

std::string hint_for(std::string_view name, const std::vector<std::string_view>& known) {
  if (const std::string_view key = key_of_file(name); !key.empty())
    return join("; ", key, " is set in the configuration file");
  const std::string_view meant = nearest(name, known);
  return meant.empty() ? std::string() : join("; did you mean ", kPrefix, meant, '?');
}

}  // namespace

std::vector<std::string> unknown_variables(const char* const* environment) {
  const std::vector<std::string_view> known = known_names();
  std::vector<std::string> warnings;
  for (; environment && *environment; ++environment) {
    const std::string_view variable = *environment, whole = variable.substr(0, variable.find('='));
    if (!whole.starts_with(kPrefix)) continue;
    const std::string_view name = whole.substr(kPrefix.size());
    if (std::ranges::find(known, name) == known.end())
      warnings.push_back(
          join("the variable ", whole, " is not known and has no effect", hint_for(name, known)));
  }
  std::ranges::sort(warnings);
  return warnings;
}

}  // namespace tensorcraft

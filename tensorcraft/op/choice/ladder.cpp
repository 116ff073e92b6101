// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/choice/ladder.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/jit/entry.hpp"

#include <cctype>
#include <cstring>
#include <string>
#include <utility>

namespace tensorcraft::op {
namespace {

std::string pascal_case(std::string_view name) {
  std::string result;
  char before = '_';
  for (const char c : name) {
    if (c != '_') result += before == '_' ? char(std::toupper(static_cast<unsigned char>(c))) : c;
    before = c;
  }
  return result;
}

}  // namespace

const jit::Rung& make_rung(std::string_view folder, std::string_view name, std::string_view file,
                           std::span<const ConfigField> fields, std::string_view config,
                           std::function<ConfigBytes(const ConfigBytes&)> general) {
  const std::string scope = join("tensorcraft::kernel::", folder, "::");
  return *new jit::Rung{std::string(folder),
                        std::string(name),
                        join("tensorcraft/ops/", folder, "/", file),
                        join(scope, pascal_case(name), "::run"),
                        scope + std::string(config),
                        fields,
                        nullptr,
                        std::move(general)};
}

std::vector<std::string> differing_fields(const jit::Rung& rung, std::span<const ConfigBytes> all) {
  uint64_t which = 0;
  for (size_t i = 0; i < rung.fields.size(); ++i)
    for (const ConfigBytes& config : all)
      if (std::memcmp(&config[i * sizeof(int)], &all[0][i * sizeof(int)], sizeof(int)) != 0)
        which |= uint64_t(1) << i;
  std::vector<std::string> texts;
  for (const ConfigBytes& config : all)
    texts.push_back(jit::config_fields(rung, config, which ? which : ~uint64_t(0)));
  return texts;
}

}  // namespace tensorcraft::op

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/ladder.hpp"

#include "tensorcraft/core/error.hpp"

#include <cctype>
#include <string>

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
                           bool begins_itself) {
  const std::string scope = join("tensorcraft::kernel::", folder, "::");
  return *new jit::Rung{std::string(folder),
                        std::string(name),
                        join("tensorcraft/ops/", folder, "/", file),
                        join(scope, pascal_case(name), "::run"),
                        scope + std::string(config),
                        fields,
                        begins_itself};
}

}  // namespace tensorcraft::op

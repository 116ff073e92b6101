// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tensorcraft::jit {

// A compiler and what tells it from another one in its place.
struct Executable {
  std::string path;
  int64_t bytes = 0, modified_ns = 0;
};
// The first of the names in the folders of a search path ("/usr/bin:/bin").
std::optional<Executable> find_executable(std::string_view search_path,
                                          std::span<const std::string_view> names);

}  // namespace tensorcraft::jit

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/clangd.hpp"

#include "tensorcraft/core/prefixes.hpp"

namespace tensorcraft::diagnose {
namespace {

namespace fs = std::filesystem;

// A scalar of YAML in single quotes, which may hold any character.
std::string quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result.append(c == '\'' ? 2 : 1, c);
  return result + "'";
}

bool holds(const fs::path& folder, const char* file) {
  std::error_code error;
  return fs::exists(folder / file, error);
}

}  // namespace

std::string clangd_config(std::string_view arch, std::span<const fs::path> folders) {
  std::string text = "CompileFlags:\n  Add:\n";
  const auto add = [&text](std::string_view flag) { text += "    - " + quoted(flag) + '\n'; };
  add("-xcuda");
  add("--cuda-gpu-arch=" + std::string(arch));
  for (const char* flag : {"-std=c++20", "-Wall", "-Wextra"}) add(flag);
  for (const fs::path& folder : folders) {
    add("-isystem");
    add(folder.string());
  }
  return text;
}

std::vector<fs::path> header_folders() {
  constexpr const char* kOurs = "tensorcraft/device/base.h";
  std::vector<fs::path> found;
  // Installed beside lib/, or the source tree around a build folder.
  for (fs::path at = own_folder(); at.has_relative_path() && found.empty(); at = at.parent_path())
    for (const fs::path& folder : {at / "include", at})
      if (found.empty() && holds(folder, kOurs)) found.push_back(folder);
  const fs::path toolkit = "/usr/local/cuda/include";
  if (holds(toolkit, "cuda.h")) found.push_back(toolkit);
  return found;
}

}  // namespace tensorcraft::diagnose

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/prefixes.hpp"

#include "tensorcraft/core/fork.hpp"

#include <algorithm>
#include <mutex>

#include <dlfcn.h>

namespace tensorcraft {
namespace {

namespace fs = std::filesystem;

struct Added {
  ForkSafeMutex mutex;
  std::vector<fs::path> paths;
};
Added& added = *new Added;  // leaked: asked for until the process ends

}  // namespace

fs::path own_folder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&prefixes), &info) || !info.dli_fname) return {};
  std::error_code error;
  return fs::canonical(info.dli_fname, error).parent_path();
}

std::vector<fs::path> prefixes() {
  std::vector<fs::path> all;
  for (fs::path folder = own_folder(); folder.has_relative_path(); folder = folder.parent_path())
    if (folder.filename() == "site-packages")  // PREFIX/lib/python3.X/site-packages
      all.push_back(folder.parent_path().parent_path().parent_path());
  const std::lock_guard lock(added.mutex);
  all.insert(all.end(), added.paths.begin(), added.paths.end());
  return all;
}

void add_prefix(const std::string& path) {
  const std::lock_guard lock(added.mutex);
  if (std::ranges::find(added.paths, fs::path(path)) == added.paths.end())
    added.paths.push_back(path);
}

std::vector<fs::path> site_packages(const fs::path& prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(prefix / "lib", error))
    if (entry.path().filename().string().starts_with("python"))
      found.push_back(entry.path() / "site-packages");
  return found;
}

}  // namespace tensorcraft

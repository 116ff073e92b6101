// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/executable.hpp"

#include "tensorcraft/core/error.hpp"

#include <sys/stat.h>
#include <unistd.h>

namespace tensorcraft::jit {

std::optional<Executable> find_executable(std::string_view search_path,
                                          std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    for (std::string_view rest = search_path; !rest.empty();) {
      const size_t end = rest.find(':');
      const std::string path = join(rest.substr(0, end), "/", name);
      rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
      struct stat info{};
      if (path.front() != '/' || stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
          access(path.c_str(), X_OK) != 0)
        continue;
      return Executable{path, info.st_size,
                        int64_t(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec};
    }
  }
  return std::nullopt;
}

}  // namespace tensorcraft::jit

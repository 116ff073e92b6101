// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/simt/shadow.hpp"

#include <cstdio>

#include <dlfcn.h>

namespace tensorcraft::simt {
namespace {

// The innermost line of the repository's own that addr2line knows for the call before `address`;
// empty without addr2line or debug information.
std::string line_of(const char* file, uintptr_t offset) {
  const std::string command =
      join("addr2line -i -e '", file, "' 0x", std::hex, offset - 1, " 2>/dev/null");
  FILE* const pipe = popen(command.c_str(), "r");
  if (!pipe) return "";
  char text[512];
  std::string found;
  while (found.empty() && std::fgets(text, sizeof(text), pipe)) {
    std::string line(text);
    line.erase(line.find_last_not_of(" \n") + 1);
    if (const size_t discriminator = line.find(" (disc"); discriminator != std::string::npos)
      line.erase(discriminator);
    // The lines of the float types and of <bits/...> say less than the rung's that called them.
    const bool library = line.starts_with("/usr/") || line.find("/device/") != std::string::npos;
    if (!library && line.find("?") == std::string::npos) found = line;
  }
  pclose(pipe);
  for (const char* root : {"tensorcraft/ops/", "tests/"})
    if (const size_t at = found.rfind(root); at != std::string::npos) return found.substr(at);
  return found;
}

}  // namespace

std::string describe(const Site& site) {
  if (site.wrapper) return site.wrapper;
  Dl_info info{};
  if (!site.address || !dladdr(site.address, &info) || !info.dli_fname) return "unknown code";
  const auto offset =
      reinterpret_cast<uintptr_t>(site.address) - reinterpret_cast<uintptr_t>(info.dli_fbase);
  const std::string line = line_of(info.dli_fname, offset);
  return line.empty() ? join(info.dli_fname, "+0x", std::hex, offset) : line;
}

}  // namespace tensorcraft::simt

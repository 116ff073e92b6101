// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/jit/cache.hpp"
#include "tensorcraft/jit/module.hpp"
#include "tensorcraft/jit/executable.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// How a module's compilers are run. Internal to jit/.
namespace tensorcraft::jit {

// The cache uses this as the architecture of modules, which are of the host.
inline constexpr std::string_view kModuleArch = "module";

// The tools on this machine for a module.
struct ModuleTools {
  Executable host;
  std::optional<Executable> nvcc;  // if there are CUDA files
  std::string headers;             // the folder that has tensorcraft/jit/export.hpp
  std::string library;             // to link; empty: it is part of the program
  std::string arch;                // "sm_90a", of the first GPU; that one if there is none
};
// Kind unsupported, with what to install, if something is missing.
ModuleTools find_tools(const ModuleSpec& spec);

// The commands, of which the last links.
std::vector<std::vector<std::string>> build_commands(const ModuleSpec& spec,
                                                     const ModuleTools& tools);
// The name of its files: letters, digits and _.
std::string file_stem(const ModuleSpec& spec);
// Its key, but for the headers that its files reach.
std::string module_key(const ModuleSpec& spec, const ModuleTools& tools);

// Runs the commands. Its log holds the commands and the files that were read, for the two below.
CacheEntry build(const ModuleSpec& spec, const ModuleTools& tools, const std::string& key);
// Have all files that an entry was compiled from the content they had?
bool is_fresh(const CacheEntry& entry);
std::vector<std::string> commands_of(const CacheEntry& entry);
// Files that an entry was compiled from, by its log.
std::vector<std::string> files_of(const CacheEntry& entry);

}  // namespace tensorcraft::jit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/jit/executable.hpp"
#include "tensorcraft/jit/user_source.hpp"
#include "tensorcraft/simt/launch.hpp"

#include <optional>
#include <string>
#include <string_view>

// A user's kernel on the SIMT device: its text, compiled by the host's C++ compiler.
namespace tensorcraft::jit {

using HostCompiler = Executable;
// The first of g++, clang++ and c++ in the folders of a search path ("/usr/bin:/bin").
std::optional<HostCompiler> find_host_compiler(std::string_view search_path);

// The kernel as the emulator calls it. From memory, then disk, then a compiler on PATH, which takes
// about a second. In the race library its accesses are seen. Kind unsupported if nothing is cached
// and there is no compiler, kind compile with the compiler's messages if the text does not compile,
// kind io if it cannot be run. Safe from any thread.
simt::Body host_body(const UserSource& source);

// How many kernels a compiler was run for, and how many came from disk, since the process began.
struct HostCounters {
  long compiles = 0, disk_hits = 0;
};
HostCounters host_counters();
// Forgets what is loaded, which stays loaded for its users; the disk is kept.
void clear_host_bodies();

}  // namespace tensorcraft::jit

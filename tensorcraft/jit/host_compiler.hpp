// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/jit/entry.hpp"
#include "tensorcraft/jit/executable.hpp"
#include "tensorcraft/jit/memory_library.hpp"
#include "tensorcraft/simt/launch.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

// A kernel on the emulator, a rung of the library or a user's: its text, compiled by the host's
// C++ compiler.
namespace tensorcraft::jit {

using HostCompiler = Executable;
// The first of g++, clang++ and c++ in the folders of a search path ("/usr/bin:/bin").
std::optional<HostCompiler> find_host_compiler(std::string_view search_path);

// A kernel as the emulator calls it, loaded as long as the object.
struct HostKernel {
  HostKernel(const std::string& name, std::string_view image, std::string_view what)
      : library(name, image, what) {}
  // The library, and the entry in it.
  MemoryLibrary library;
  simt::Body body = nullptr;
};

// From memory, then disk, then a compiler on PATH, which takes about a second; equal calls of many
// threads and processes compile once. In the race library its accesses are seen. Kind unsupported
// if nothing is cached and there is no compiler, kind compile with the compiler's messages if the
// text does not compile, kind io if it cannot be run. Safe from any thread.
std::shared_ptr<const HostKernel> host_kernel(const KernelKey& key);

// Loads the kernel ahead of a call. True if a compiler ran for it now, false if memory or disk had
// it.
bool load_host_kernel(const KernelKey& key);

// Why no kernel can be compiled: there is no compiler, or the setting jit is off. Empty if one can.
std::string_view host_compiler_problem();

// How many kernels a compiler was run for, and how many came from disk, since the process began.
struct HostCounters {
  long compiles = 0, disk_hits = 0;
};
HostCounters host_counters();
// How many kernels are kept in memory, 1,024 unless set: those unused for longest go.
void set_host_kernel_limit(size_t kernels);
// Forgets what is loaded, which stays loaded for its users; the disk is kept.
void clear_host_kernels();

}  // namespace tensorcraft::jit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/jit/export.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Modules of a user's own C++ and CUDA C++ files, compiled where the compilers are installed: the
// host's for C++, nvcc for CUDA.
namespace tensorcraft::jit {

// An exported name and the function behind it, as the files spell it: "MyKernel<256>::run".
struct ModuleWrapper {
  std::string name, function;
};

// All that a module is made of.
struct ModuleSpec {
  // Behind "tensorcraft_jit_" and joined by _ they are the module's name.
  std::vector<std::string> markers;
  std::vector<std::string> cpp_files, cuda_files;          // of all, one text is compiled
  std::vector<ModuleWrapper> cpp_wrappers, cuda_wrappers;  // of functions in those files
  std::vector<std::string> extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths;
  std::string build_directory = {};  // keeps what is generated and compiled; empty: a folder
                                     // that is gone afterwards
};

// "tensorcraft_jit_my_kernel_128".
std::string module_name(const ModuleSpec& spec);
// Returns the text that is compiled: an include of each file by its absolute path, and a line for
// each export.
std::string wrapper_text(std::span<const std::string> files,
                         std::span<const ModuleWrapper> wrappers);

// A loaded module. Its library is loaded as long as the object; for good if it has CUDA files, as a
// GPU may still run their kernels.
class Module {
 public:
  // `library` is what the functions are in.
  Module(std::string name, std::map<std::string, ExportFunction*> exports,
         std::vector<std::string> commands, std::shared_ptr<const void> library = nullptr)
      : library_(std::move(library)),
        name_(std::move(name)),
        exports_(std::move(exports)),
        commands_(std::move(commands)) {}
  const std::string& name() const { return name_; }
  std::vector<std::string> exports() const;  // their names, sorted
  // The commands that compiled and linked it, whenever that was.
  const std::vector<std::string>& commands() const { return commands_; }
  // Kind key for a name that is not exported; else what the function throws, and kind type in
  // place of what is no std::exception.
  ExportValue call(const std::string& name, std::span<const ExportValue> arguments) const;

 private:
  const std::shared_ptr<const void> library_;
  const std::string name_;
  const std::map<std::string, ExportFunction*> exports_;
  const std::vector<std::string> commands_;
};

// From memory, then from the cache on disk, then from the compilers. The key is content alone: of
// the files, of every header that they reach but those of the system, of the wrappers, flags and
// compilers. Equal calls of many threads and processes compile once. A repeated call only looks
// whether its files, the user's headers and the compilers have the times and sizes they had; what
// changed in the last seconds, whose times may not tell, is read again. Kind value for a spec that
// cannot be, not_found for a file that is not there, unsupported without nvcc (if there are CUDA
// files) or a C++ compiler or the library's headers, compile with the compiler's messages.
std::shared_ptr<const Module> load_module(const ModuleSpec& spec);

// How many modules a compiler was run for, and how many came from disk, since the process began.
struct ModuleCounters {
  long compiles = 0, disk_hits = 0;
};
ModuleCounters module_counters();
// How many modules are kept in memory, 256 unless set: those unused for longest go.
void set_module_limit(size_t modules);
// Forgets what is loaded, which stays loaded for its users; the disk is kept.
void clear_modules();

}  // namespace tensorcraft::jit

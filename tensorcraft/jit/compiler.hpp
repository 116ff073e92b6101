// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/jit/cache.hpp"
#include "tensorcraft/jit/entry.hpp"
#include "tensorcraft/jit/source.hpp"
#include "tensorcraft/jit/toolchain.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::jit {

// All that goes into one compilation, and the name of its result.
struct Program {
  std::string entry;  // name of the kernel
  std::string text;   // entry_text()
  std::string arch;   // "sm_90a"
  std::vector<std::string> options;
  std::shared_ptr<const HeaderSet> headers;
  std::string key;        // SHA-256 over content alone, 64 hexadecimal digits
  std::string signature;  // readable_name(), architecture, optimisation and the key's first digits
  const UserSource* user = nullptr;  // of a user's kernel
};

// How device code is compiled, for every kernel of a build alike. The default is fast code.
struct CompilationOptions {
  // There is no other compiler to choose: NVRTC is found where the driver is, so a kernel needs no
  // toolkit and is the same on every machine. Files of a user's that load_jit() gives to nvcc are
  // compiled by flags of theirs.
  static constexpr bool use_nvrtc = true;
  bool device_debug = false;  // for a debugger, without optimisation: the debug preset
  bool line_info = false;     // source lines in a profiler: the profile preset
  int optimization_level() const { return device_debug ? 0 : 3; }
};
// Returns the options for which this library was built.
CompilationOptions build_options();
// "O3", "O0debug", "O3lines": a part of a kernel's signature.
std::string to_string(const CompilationOptions& options);

Program make_program(const KernelKey& key, std::string_view arch, const Toolchain& toolchain,
                     const CompilationOptions& options = build_options());

// NVRTC's flags for an architecture. One that it does not know gets PTX of the newest it knows
// below; kind unsupported if there is none. Fast-math is never among them.
std::vector<std::string> compilation_flags(std::string_view arch, const Toolchain& toolchain,
                                           const CompilationOptions& options);

// Sums what ptxas said about the functions of a module; registers are those of the largest.
struct ResourceUse {
  int registers = 0;
  size_t shared_bytes = 0, stack_bytes = 0, spill_store_bytes = 0, spill_load_bytes = 0;
};
ResourceUse parse_resource_use(std::string_view log);

// The first line of a log that reports an error, else the first line.
std::string_view first_error(std::string_view log);
// Returns the part of a log that a reader needs: the errors in order with the lines that show the
// place, without warnings; if there are many errors, the first three and a count.
std::string trimmed_log(std::string_view log);

// How long one caller waits for another that compiles the same kernel: the slowest kernels take 3
// s. Afterwards it compiles for itself.
inline constexpr std::chrono::seconds kLockTimeout{20};

// From a key to an image: disk cache, then NVRTC.
class Compiler {
 public:
  // Unless it `may_compile`, what is not on disk is refused with kind unsupported.
  explicit Compiler(std::string cache_folder, size_t max_cache_bytes = kDefaultCacheBytes,
                    std::chrono::milliseconds lock_timeout = kLockTimeout, bool may_compile = true);

  struct Result {
    Program program;
    CacheEntry entry;
    bool from_disk = false, on_disk = false;  // on_disk: before or since
  };
  // `fresh` compiles in any case, and neither reads nor writes the disk. Kind compile if the text
  // does not compile.
  Result build(const KernelKey& key, std::string_view arch, bool fresh = false);
  // Drops a result that came from disk and turned out not to load.
  void reject(const Result& result) { disk_.reject(result.program.key); }

  long compiles() const { return compiles_; }
  long disk_hits() const { return disk_hits_; }
  long bad_entries() const { return disk_.bad_entries(); }

 private:
  bool load(Result& result);
  void compile(Result& result);

  const std::chrono::milliseconds lock_timeout_;
  const bool may_compile_;
  DiskCache disk_;
  ToolchainSource toolchain_;
  std::atomic<long> compiles_ = 0, disk_hits_ = 0;
};

}  // namespace tensorcraft::jit

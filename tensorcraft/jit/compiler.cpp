// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/compiler.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/hash.hpp"
#include "tensorcraft/core/log.hpp"
#include "tensorcraft/core/to_number.hpp"
#include "tensorcraft/jit/machine_code.hpp"
#include "tensorcraft/jit/user_source.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

namespace tensorcraft::jit {
namespace {

std::string lines_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text.append(text.empty() ? "" : "\n").append(line);
  return text;
}

std::string content_key(const Program& program, const Toolchain& toolchain) {
  Sha256 hash;
  hash.field("tensorcraft kernel").field(std::to_string(kCacheFormat));
  hash.field(join("nvrtc ", toolchain.version.major, ".", toolchain.version.minor));
  hash.field(program.arch).field(lines_of(program.options)).field(program.text);
  for (const auto& header : *program.headers) hash.field(header->name).field(header->sha256);
  return hash.hex();
}

// The number right before `words` in a line, 0 if they are not in it.
size_t number_before(std::string_view line, std::string_view words) {
  const size_t end = line.find(words);
  if (end == line.npos) return 0;
  size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  return to_number<size_t>(line.substr(begin, end - begin)).value_or(0);
}

template <class Function>
void for_each_line(std::string_view text, Function function) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    function(text.substr(0, end));
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
  }
}

bool reports_error(std::string_view line) {
  return line.find("error") != line.npos || line.find("fatal") != line.npos;
}

// "2 errors detected in the compilation of ..."
bool is_count(std::string_view line) { return line.find(" detected in the comp") != line.npos; }

template <class... Parts>
void trace(const Program& program, const Parts&... parts) {
  if (log_enabled(LogLevel::debug)) log_debug(join("jit: ", program.signature, ": ", parts...));
}

[[noreturn]] void fail_to_compile(const Program& program, const std::string& log) {
  std::string options = lines_of(program.options);
  std::ranges::replace(options, '\n', ' ');
  fail(ErrorKind::compile, program.entry, " does not compile for ", program.arch, ": ",
       trimmed_log(log), program.user ? hint_for(*program.user, first_error(log)) : "",
       "\n  source: ", program.entry, ".cu, which includes ", program.headers->size(),
       " headers of the library\n  options: ", options, "\n  signature: ", program.signature,
       "\nThe whole log of NVRTC:\n", log, "\nThe generated source:\n", program.text);
}

[[noreturn]] void refuse_to_compile(const Program& program) {
  fail(ErrorKind::unsupported, program.entry, ": its kernel for ", program.arch,
       " is not in the cache, and the setting jit is off; import a bundle that has it (tensorcraft "
       "cache import), or make the call once with jit on\n  signature: ",
       program.signature);
}

}  // namespace

CompilationOptions build_options() {
  CompilationOptions options;
#if defined(TENSORCRAFT_JIT_DEBUG)
  options.device_debug = true;
#endif
#if defined(TENSORCRAFT_JIT_LINEINFO)
  options.line_info = true;
#endif
  return options;
}

std::string to_string(const CompilationOptions& options) {
  return join("O", options.optimization_level(), options.device_debug ? "debug" : "",
              options.line_info ? "lines" : "");
}

std::vector<std::string> compilation_flags(std::string_view arch, const Toolchain& toolchain,
                                           const CompilationOptions& options) {
  const int number = arch_number(arch);
  const std::vector<int>& known = toolchain.architectures;
  std::string target(arch);
  if (std::ranges::find(known, number) == known.end()) {
    int newest = 0;
    for (const int candidate : known) {
      if (candidate < number) newest = std::max(newest, candidate);
    }
    if (newest == 0) {
      fail(ErrorKind::unsupported, "jit: NVRTC knows no architecture at or below ", arch,
           "; install the NVRTC that belongs to the driver (pip install nvidia-cuda-nvrtc)");
    }
    target = join("compute_", newest);
  }
  std::vector<std::string> flags{"--gpu-architecture=" + target, "--std=c++20",
                                 "--ptxas-options=--verbose", "--ptxas-options=--warn-on-spills"};
  // Without textures and the types of the CUDA runtime, which kernels have no use for: 8 ms less.
  if (toolchain.version >= cuda::NvrtcVersion{12, 4}) flags.push_back("--minimal");
  if (options.line_info) flags.push_back("--generate-line-info");
  if (options.device_debug) flags.push_back("--device-debug");
  return flags;
}

Program make_program(const KernelKey& key, std::string_view arch, const Toolchain& toolchain,
                     const CompilationOptions& options) {
  Program program;
  const UserSource* const user = key.rung ? key.rung->user : nullptr;
  program.text = user ? entry_text(*user, arch) : entry_text(key, arch);
  program.entry = entry_name(*key.rung);
  program.user = user;
  program.arch = arch;
  program.options = compilation_flags(arch, toolchain, options);
  program.headers = user ? headers_of(*user, program.text) : include_closure(key.rung->header);
  program.key = content_key(program, toolchain);
  program.signature = join(readable_name(key), "_arch", arch.substr(arch.find('_') + 1), "_opt",
                           to_string(options), "_hash", program.key.substr(0, 16));
  return program;
}

ResourceUse parse_resource_use(std::string_view log) {
  ResourceUse use;
  for_each_line(log, [&use](std::string_view line) {
    use.registers = std::max(use.registers, int(number_before(line, " registers")));
    use.shared_bytes += number_before(line, " bytes smem");
    use.stack_bytes += number_before(line, " bytes stack frame");
    use.spill_store_bytes += number_before(line, " bytes spill stores");
    use.spill_load_bytes += number_before(line, " bytes spill loads");
  });
  return use;
}

std::string_view first_error(std::string_view log) {
  std::string_view first, error;
  for_each_line(log, [&](std::string_view line) {
    if (first.empty()) first = line;
    if (error.empty() && reports_error(line)) error = line;
  });
  return error.empty() ? first : error;
}

std::string trimmed_log(std::string_view log) {
  constexpr int kShown = 3;
  std::string text;
  int errors = 0;
  bool belongs = false;  // this line to an error that is shown
  for_each_line(log, [&](std::string_view line) {
    const bool indented = line.starts_with(' ') || line.starts_with('\t');
    if (reports_error(line) && !indented && !is_count(line))
      ++errors;
    else if (!indented || !belongs)
      return void(belongs = false);
    belongs = errors <= kShown;
    if (belongs) text.append(text.empty() ? "" : "\n").append(line);
  });
  if (errors > kShown) text.append(join("\n(and ", errors - kShown, " more errors)"));
  return errors == 0 ? std::string(first_error(log)) : text;
}

Compiler::Compiler(std::string cache_folder, size_t max_cache_bytes,
                   std::chrono::milliseconds lock_timeout, bool may_compile)
    : lock_timeout_(lock_timeout),
      may_compile_(may_compile),
      disk_(std::move(cache_folder), max_cache_bytes),
      toolchain_(disk_.folder()) {}

bool Compiler::load(Result& result) {
  std::optional<CacheEntry> entry = disk_.load(result.program.key, result.program.arch);
  if (!entry) return false;
  result.entry = std::move(*entry);
  result.from_disk = result.on_disk = true;
  ++disk_hits_;
  trace(result.program, "loaded from disk");
  return true;
}

void Compiler::compile(Result& result) {
  const Program& program = result.program;
  std::vector<std::pair<const char*, const char*>> headers;
  for (const auto& header : *program.headers) {
    headers.emplace_back(header->name.c_str(), header->text.c_str());
  }
  trace(program, "compiling an entry of ", program.text.size(), " bytes with ", headers.size(),
        " headers, options ", lines_of(program.options));
  const auto begin = std::chrono::steady_clock::now();
  cuda::NvrtcResult compiled = cuda::nvrtc_compile(
      program.text, program.user ? entry_file(*program.user, ".cu") : program.entry + ".cu",
      headers, program.options);
  if (!compiled.ok) fail_to_compile(program, compiled.log);
  if (program.arch.starts_with("sm_90") && has_broken_copies(compiled.image)) {
    fail(ErrorKind::compile, program.entry, ": the assembler of NVRTC made an instruction that ",
         program.arch, " does not have; name another variant\n  signature: ", program.signature);
  }
  ++compiles_;
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  result.entry = {.signature = program.signature,
                  .arch = program.arch,
                  .options = lines_of(program.options),
                  .image = std::move(compiled.image),
                  .log = std::move(compiled.log),
                  .created = std::time(nullptr),
                  .milliseconds = elapsed.count()};
  trace(program, "compiled in ", elapsed.count(), " ms to ", result.entry.image.size(), " bytes");
}

Compiler::Result Compiler::build(const KernelKey& key, std::string_view arch, bool fresh) {
  Result result;
  if (fresh) {
    if (!may_compile_) refuse_to_compile(make_program(key, arch, toolchain_.candidates().front()));
    result.program = make_program(key, arch, toolchain_.confirm());
    compile(result);
    return result;
  }
  for (const Toolchain& toolchain : toolchain_.candidates()) {
    result.program = make_program(key, arch, toolchain);
    if (load(result)) return result;
  }
  trace(result.program, "not on disk");
  if (!may_compile_) refuse_to_compile(result.program);
  // The key so far may come from the memo; the one that is stored names the compiler that runs.
  result.program = make_program(key, arch, toolchain_.confirm());
  const CacheFolder::Lock lock = disk_.lock(result.program.key, lock_timeout_);
  if (load(result)) return result;
  compile(result);
  result.on_disk = disk_.store(result.program.key, result.entry);
  if (result.on_disk) toolchain_.record();
  trace(result.program, result.on_disk ? "stored on disk" : "kept in memory only");
  return result;
}

}  // namespace tensorcraft::jit

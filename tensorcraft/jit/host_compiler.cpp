// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/host_compiler.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/hash.hpp"
#include "tensorcraft/core/version.hpp"
#include "tensorcraft/jit/cache.hpp"
#include "tensorcraft/jit/compiler.hpp"
#include "tensorcraft/jit/flights.hpp"
#include "tensorcraft/jit/recently_used.hpp"
#include "tensorcraft/jit/work_folder.hpp"

#include <chrono>
#include <ctime>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

namespace tensorcraft::jit {
namespace {

constexpr std::string_view kArch = "simt";

struct HostProgram {
  const UserSource& source;
  std::string name, text, key;
  std::shared_ptr<const HeaderSet> headers;
  std::vector<std::string> options;
};

HostProgram make_program(const UserSource& source, const HostCompiler& compiler) {
  HostProgram program{.source = source, .name = entry_name(source), .text = host_text(source)};
  program.headers = headers_of(source, program.text);
  program.options = {"-std=c++20",
                     "-O1",
                     "-g1",
                     "-fPIC",
                     "-fvisibility=hidden",
                     "-fno-math-errno",
                     "-Wno-unknown-pragmas",
                     "-fsanitize-coverage=trace-pc"};  // its steps can be interrupted
  // It tells of its accesses to functions that the race library defines.
  if (simt::is_race_library()) program.options.push_back("-fsanitize=thread");
  Sha256 hash;
  hash.field("tensorcraft host kernel").field(std::to_string(kCacheFormat)).field(version());
  hash.field(compiler.path).field(std::to_string(compiler.bytes));
  hash.field(std::to_string(compiler.modified_ns)).field(program.text);
  for (const std::string& option : program.options) hash.field(option);
  for (const auto& header : *program.headers) hash.field(header->name).field(header->sha256);
  program.key = hash.hex();
  return program;
}

// The one word of CUDA that a host compiler cannot be told.
std::string hint(const std::string& log) {
  constexpr std::string_view kWord =
      "__"
      "shared__";  // in two parts: the library's own device text may not hold it
  if (log.find(kWord) == log.npos) return {};
  return join(
      "\n  fix: include tensorcraft/device/shared.cuh and write `auto& tile = "
      "static_shared<Tile>();` with a struct Tile for ",
      kWord,
      " (dynamic_shared<Tile>() for memory that the launch sizes), which every device "
      "compiles");
}

[[noreturn]] void fail_to_compile(const HostProgram& program, const HostCompiler& compiler,
                                  const std::string& log) {
  fail(ErrorKind::compile, program.name,
       " does not compile for the SIMT device: ", trimmed_log(log), hint(log),
       hint_for(program.source, first_error(log)), "\n  compiler: ", compiler.path,
       "\nIts whole output:\n", log, "\nThe generated source:\n", program.text);
}

// Files of the library begin with a dot, which those of a user do not.
CacheEntry compile(const HostProgram& program, const HostCompiler& compiler) {
  const WorkFolder folder("kernel");
  const auto begin = std::chrono::steady_clock::now();
  const std::string file = entry_file(program.source, ".cpp");
  folder.write(file, program.text);
  for (const auto& header : *program.headers)
    folder.write(header->name == program.source.file ? header->name : ".include/" + header->name,
                 header->text);
  std::vector<std::string> command{compiler.path};
  command.insert(command.end(), program.options.begin(), program.options.end());
  // Reports name lines by the user's file, not by a folder that is gone.
  command.push_back("-fdebug-prefix-map=" + folder.path() + "=.");
  for (const char* word : {"-I.include", "-I.", "-c", file.c_str(), "-o", ".kernel.o"})
    command.emplace_back(word);
  if (!folder.run(command)) fail_to_compile(program, compiler, folder.log());
  // Not linked with the sanitizer: its functions are in the race library.
  std::vector<std::string> link{compiler.path, "-shared", "-Wl,-Bsymbolic",
                                ".kernel.o",   "-o",      ".kernel.so"};
  if (const std::string library = own_library(); !library.empty()) link.push_back(library);
  std::string image;
  if (folder.run(link)) image = folder.read(".kernel.so");
  if (image.empty()) fail_to_compile(program, compiler, folder.log());
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  return {.signature = join(program.name, "_", kArch, "_hash", program.key.substr(0, 16)),
          .arch = std::string(kArch),
          .image = std::move(image),
          .log = folder.log(),
          .created = std::time(nullptr),
          .milliseconds = elapsed.count()};
}

using SharedKernel = std::shared_ptr<const HostKernel>;

SharedKernel load(const HostProgram& program, const std::string& image) {
  const auto kernel = std::make_shared<HostKernel>(program.name, image, "kernel: the SIMT device");
  kernel->body = reinterpret_cast<simt::Body>(kernel->library.symbol(program.name));
  if (kernel->body) return kernel;
  fail(ErrorKind::compile, "kernel: the SIMT device: ", program.name,
       " cannot be loaded: it has no entry");
}

struct HostKernels {
  ForkSafeMutex mutex;
  Flights<const UserSource*> flights;
  RecentlyUsed<const UserSource*, SharedKernel> loaded{1024};
  HostCounters counters;
  DiskCache disk{config().cache_dir, size_t(config().cache_limit_bytes)};
};
HostKernels& host_kernels() {
  static auto* const all = new HostKernels;  // leaked: kernels may run until the process ends
  return *all;
}

void count(HostKernels& all, long HostCounters::* what) {
  const std::lock_guard lock(all.mutex);
  ++(all.counters.*what);
}

SharedKernel from_memory(HostKernels& all, const UserSource& source) {
  const std::lock_guard lock(all.mutex);
  const SharedKernel* const known = all.loaded.find(&source);
  return known ? *known : nullptr;
}

SharedKernel from_disk(HostKernels& all, const HostProgram& program) {
  const auto entry = all.disk.load(program.key, kArch);
  if (!entry) return nullptr;
  try {
    SharedKernel kernel = load(program, entry->image);
    count(all, &HostCounters::disk_hits);
    return kernel;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::compile) throw;
    all.disk.reject(program.key);  // as after the library moved
    return nullptr;
  }
}

SharedKernel load_or_compile(HostKernels& all, const UserSource& source) {
  const auto compiler = find_host_compiler(config().search_path);
  if (!compiler)
    fail(ErrorKind::unsupported, "kernel: ", source.signature.name,
         " cannot run on the SIMT device: there is no C++ compiler (g++, clang++ or c++) in the "
         "folders of PATH; install g++, or run the kernel on a GPU, which needs none");
  const HostProgram program = make_program(source, *compiler);
  if (SharedKernel kernel = from_disk(all, program)) return kernel;
  const auto held = all.disk.lock(program.key, kLockTimeout);
  if (SharedKernel kernel = from_disk(all, program)) return kernel;  // another process compiled it
  const CacheEntry entry = compile(program, *compiler);
  count(all, &HostCounters::compiles);
  SharedKernel kernel = load(program, entry.image);
  all.disk.store(program.key, entry);
  return kernel;
}

}  // namespace

std::optional<HostCompiler> find_host_compiler(std::string_view search_path) {
  constexpr std::string_view kNames[] = {"g++", "clang++", "c++"};
  return find_executable(search_path, kNames);
}

std::shared_ptr<const HostKernel> host_kernel(const UserSource& source) {
  HostKernels& all = host_kernels();
  if (SharedKernel known = from_memory(all, source)) return known;
  const Flights<const UserSource*>::Flight alone(all.flights, &source);
  if (SharedKernel known = from_memory(all, source)) return known;
  SharedKernel kernel = load_or_compile(all, source);
  std::list<SharedKernel> gone;  // unloaded without the lock
  const std::lock_guard lock(all.mutex);
  all.loaded.put(&source, kernel, gone);
  return kernel;
}

HostCounters host_counters() {
  const std::lock_guard lock(host_kernels().mutex);
  return host_kernels().counters;
}

void set_host_kernel_limit(size_t limit) {
  std::list<SharedKernel> gone;
  const std::lock_guard lock(host_kernels().mutex);
  host_kernels().loaded.set_limit(limit, gone);
}

void clear_host_kernels() {
  std::list<SharedKernel> gone;
  const std::lock_guard lock(host_kernels().mutex);
  host_kernels().loaded.clear(gone);
}

}  // namespace tensorcraft::jit

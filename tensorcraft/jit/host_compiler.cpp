// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/host_compiler.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/hash.hpp"
#include "tensorcraft/core/version.hpp"
#include "tensorcraft/jit/cache.hpp"
#include "tensorcraft/jit/compiler.hpp"
#include "tensorcraft/jit/flights.hpp"
#include "tensorcraft/jit/recently_used.hpp"
#include "tensorcraft/jit/user_source.hpp"
#include "tensorcraft/jit/work_folder.hpp"
#include "tensorcraft/simt/instrumentation.hpp"

#include <chrono>
#include <ctime>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

namespace tensorcraft::jit {
namespace {

constexpr std::string_view kArch = "simt";
constexpr std::string_view kNoCompiler =
    "there is no C++ compiler (g++, clang++ or c++) in the folders of PATH; install g++";

struct HostProgram {
  const UserSource* user;  // of a user's kernel; null: it is a rung of the library
  std::string name, text, key, signature;
  std::shared_ptr<const HeaderSet> headers;
  std::vector<std::string> options;

  // Files of the library begin with a dot, which those of a user do not.
  std::string file() const { return user ? entry_file(*user, ".cpp") : join(".", name, ".cpp"); }
  // Is a header the user's own text? It lies beside the entry, the others in a folder.
  bool is_own(const Header& header) const { return user && header.name == user->file; }
};

HostProgram make_program(const KernelKey& key, const HostCompiler& compiler) {
  const UserSource* const user = key.rung->user;
  HostProgram program{.user = user};
  program.name = user ? entry_name(*user) : entry_name(*key.rung);
  program.text = user ? host_text(*user) : host_text(key);
  program.headers = user ? headers_of(*user, program.text) : include_closure_of(program.text, {});
  program.options = {
      "-std=c++20",           "-O1",       "-g1", "-fPIC", "-fvisibility=hidden", "-fno-math-errno",
      "-Wno-unknown-pragmas", "-Wno-psabi"};
  if (user)
    program.options.push_back("-fsanitize-coverage=trace-pc");  // its steps can be interrupted
  // It tells of its accesses to functions that the race library defines.
  if (simt::is_race_library()) program.options.push_back("-fsanitize=thread");
  if (simt::is_asan_library()) program.options.push_back("-fsanitize=address");
  Sha256 hash;
  hash.field("tensorcraft host kernel").field(std::to_string(kCacheFormat)).field(version());
  hash.field(compiler.path).field(std::to_string(compiler.bytes));
  hash.field(std::to_string(compiler.modified_ns)).field(program.text);
  for (const std::string& option : program.options) hash.field(option);
  for (const auto& header : *program.headers) hash.field(header->name).field(header->sha256);
  program.key = hash.hex();
  program.signature = join(user ? program.name : readable_name(key), "_", kArch, "_hash",
                           std::string_view(program.key).substr(0, 16));
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
  fail(ErrorKind::compile, program.name, " does not compile for the emulator: ", trimmed_log(log),
       hint(log), program.user ? hint_for(*program.user, first_error(log)) : "",
       "\n  compiler: ", compiler.path, "\nIts whole output:\n", log, "\nThe generated source:\n",
       program.text);
}

CacheEntry compile(const HostProgram& program, const HostCompiler& compiler) {
  const WorkFolder folder("kernel");
  const auto begin = std::chrono::steady_clock::now();
  const std::string file = program.file();
  folder.write(file, program.text);
  for (const auto& header : *program.headers)
    folder.write(program.is_own(*header) ? header->name : ".include/" + header->name, header->text);
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
  return {.signature = program.signature,
          .arch = std::string(kArch),
          .image = std::move(image),
          .log = folder.log(),
          .created = std::time(nullptr),
          .milliseconds = elapsed.count()};
}

using SharedKernel = std::shared_ptr<const HostKernel>;

SharedKernel load(const HostProgram& program, const std::string& image) {
  const auto kernel = std::make_shared<HostKernel>(program.name, image, "kernel: the emulator");
  kernel->body = reinterpret_cast<simt::Body>(kernel->library.symbol(program.name));
  if (kernel->body) return kernel;
  fail(ErrorKind::compile, "kernel: the emulator: ", program.name,
       " cannot be loaded: it has no entry");
}

struct HostKernels {
  ForkSafeMutex mutex;
  Flights<KernelKey> flights;
  RecentlyUsed<KernelKey, SharedKernel> loaded{1024};
  HostCounters counters;
  DiskCache disk{config().cache_dir, size_t(config().cache_limit_bytes)};
};
HostKernels& host_kernels() {
  static constinit FirstMade<HostKernels> all;
  return *all;
}

void count(HostKernels& all, long HostCounters::* what) {
  const std::lock_guard lock(all.mutex);
  ++(all.counters.*what);
}

SharedKernel from_memory(HostKernels& all, const KernelKey& key) {
  const std::lock_guard lock(all.mutex);
  const SharedKernel* const known = all.loaded.find(key);
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

struct Found {
  SharedKernel kernel;
  bool was_compiled = false;  // by this call
};

Found load_or_compile(HostKernels& all, const KernelKey& key) {
  const auto compiler = find_host_compiler(config().search_path);
  if (!compiler)
    fail(ErrorKind::unsupported,
         "kernel: ", key.rung->user ? key.rung->user->signature.name : readable_name(key),
         " cannot run on the emulator: ", kNoCompiler,
         ", or run the kernel on a GPU, which needs none");
  const HostProgram program = make_program(key, *compiler);
  if (SharedKernel kernel = from_disk(all, program)) return {kernel};
  if (!config().jit)
    fail(ErrorKind::unsupported, "kernel: ", program.name,
         " for the emulator is not in the cache, and the setting jit is off\n  signature: ",
         program.signature);
  const auto held = all.disk.lock(program.key, kLockTimeout);
  if (SharedKernel kernel = from_disk(all, program))
    return {kernel};  // another process compiled it
  const CacheEntry entry = compile(program, *compiler);
  count(all, &HostCounters::compiles);
  SharedKernel kernel = load(program, entry.image);
  all.disk.store(program.key, entry);
  return {kernel, true};
}

Found find(const KernelKey& key) {
  HostKernels& all = host_kernels();
  if (SharedKernel known = from_memory(all, key)) return {known};
  const Flights<KernelKey>::Flight alone(all.flights, key);
  if (SharedKernel known = from_memory(all, key)) return {known};
  const Found found = load_or_compile(all, key);
  std::list<SharedKernel> gone;  // unloaded without the lock
  const std::lock_guard lock(all.mutex);
  all.loaded.put(key, found.kernel, gone);
  return found;
}

}  // namespace

std::optional<HostCompiler> find_host_compiler(std::string_view search_path) {
  constexpr std::string_view kNames[] = {"g++", "clang++", "c++"};
  return find_executable(search_path, kNames);
}

std::shared_ptr<const HostKernel> host_kernel(const KernelKey& key) { return find(key).kernel; }

bool load_host_kernel(const KernelKey& key) { return find(key).was_compiled; }

std::string_view host_compiler_problem() {
  if (!config().jit) return "the setting jit is off";
  return find_host_compiler(config().search_path) ? std::string_view() : kNoCompiler;
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

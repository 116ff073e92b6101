// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/host_compiler.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/hash.hpp"
#include "tensorcraft/core/version.hpp"
#include "tensorcraft/jit/cache.hpp"
#include "tensorcraft/jit/compiler.hpp"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tensorcraft::jit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kArch = "simt";

// A folder of this process alone, gone with the object.
class WorkFolder {
 public:
  WorkFolder() {
    std::error_code error;
    path_ = (fs::temp_directory_path(error) / "tensorcraft-XXXXXX").string();
    if (error || !mkdtemp(path_.data()))
      fail(ErrorKind::io, "kernel: a folder to compile in cannot be made at ", path_, ": ",
           std::strerror(errno), "; set TMPDIR to a folder that can be written");
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::string& path() const { return path_; }
  void write(std::string_view name, std::string_view text) const {
    const fs::path file = fs::path(path_) / name;
    std::error_code ignored;
    fs::create_directories(file.parent_path(), ignored);
    std::ofstream out(file, std::ios::binary);
    if (!out.write(text.data(), std::streamsize(text.size())).flush())
      fail(ErrorKind::io, "kernel: cannot write ", file.string(), ": ", std::strerror(errno));
  }
  std::string read(std::string_view name) const {
    std::ifstream in(fs::path(path_) / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string path_;
};

// Runs a program in a folder, its messages in the file `log` there. True if it says all is well.
bool run(const std::vector<std::string>& command, const WorkFolder& folder) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.path().c_str());
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "log", O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) fail(ErrorKind::io, "kernel: cannot run ", command[0], ": ", std::strerror(failed));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return true;  // the program reaps its children itself: the result will tell
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The file this code was loaded from, which the kernel's calls of the emulator go to; empty if it
// is part of a program.
std::string own_library() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void*>(&version), &info) || !info.dli_fname) return {};
  const std::string path = info.dli_fname;
  return path.find(".so") == path.npos ? std::string() : fs::absolute(path).string();
}

struct HostProgram {
  const UserSource& source;
  std::string name, text, key;
  std::shared_ptr<const HeaderSet> headers;
  std::vector<std::string> options;
};

HostProgram make_program(const UserSource& source, const HostCompiler& compiler) {
  HostProgram program{.source = source, .name = entry_name(source), .text = host_text(source)};
  program.headers = headers_of(source, program.text);
  program.options = {
      "-std=c++20",          "-O1", "-g1", "-fPIC", "-fvisibility=hidden", "-fno-math-errno",
      "-Wno-unknown-pragmas"};
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

CacheEntry compile(const HostProgram& program, const HostCompiler& compiler) {
  const WorkFolder folder;
  const auto begin = std::chrono::steady_clock::now();
  const std::string file = program.name + ".cpp";
  folder.write(file, program.text);
  for (const auto& header : *program.headers) folder.write(header->name, header->text);
  std::vector<std::string> command{compiler.path};
  command.insert(command.end(), program.options.begin(), program.options.end());
  // Reports name lines by the user's file, not by a folder that is gone.
  command.push_back("-fdebug-prefix-map=" + folder.path() + "=.");
  for (const char* word : {"-I.", "-c", file.c_str(), "-o", "kernel.o"}) command.push_back(word);
  if (!run(command, folder)) fail_to_compile(program, compiler, folder.read("log"));
  // Not linked with the sanitizer: its functions are in the race library.
  std::vector<std::string> link{compiler.path, "-shared", "-Wl,-Bsymbolic",
                                "kernel.o",    "-o",      "kernel.so"};
  if (const std::string library = own_library(); !library.empty()) link.push_back(library);
  std::string image;
  if (run(link, folder)) image = folder.read("kernel.so");
  if (image.empty()) fail_to_compile(program, compiler, folder.read("log"));
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  return {.signature = join(program.name, "_", kArch, "_hash", program.key.substr(0, 16)),
          .arch = std::string(kArch),
          .image = std::move(image),
          .log = folder.read("log"),
          .created = std::time(nullptr),
          .milliseconds = elapsed.count()};
}

// Loads a shared library that is no file: nothing can change it between check and use. Its
// descriptor stays open, since a report of a race reads lines from it by this name.
simt::Body load(const HostProgram& program, const std::string& image) {
  const int file = memfd_create(program.name.c_str(), MFD_CLOEXEC);
  if (file < 0)
    fail(ErrorKind::io, "kernel: no memory file for ", program.name, ": ", std::strerror(errno));
  for (size_t done = 0; done < image.size();) {
    const ssize_t n = write(file, image.data() + done, image.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int why = errno;
      close(file);
      fail(ErrorKind::io, "kernel: cannot write ", program.name, ": ", std::strerror(why));
    }
    done += size_t(n);
  }
  const std::string path = join("/proc/", getpid(), "/fd/", file);
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const body = library ? dlsym(library, program.name.c_str()) : nullptr;
  if (body) return reinterpret_cast<simt::Body>(body);
  const char* const why = dlerror();
  const std::string text = why ? why : "it has no entry";
  close(file);
  fail(ErrorKind::compile, program.name, " cannot be loaded for the SIMT device: ", text);
}

struct Bodies {
  std::mutex mutex;
  std::map<const UserSource*, simt::Body> loaded;
  HostCounters counters;
  DiskCache disk{config().cache_dir, size_t(config().cache_limit_bytes)};
};
Bodies& bodies() {
  static auto* const all = new Bodies;  // leaked: kernels may run until the process ends
  return *all;
}

simt::Body find(Bodies& all, const UserSource& source) {
  const auto compiler = find_host_compiler(config().search_path);
  if (!compiler)
    fail(ErrorKind::unsupported, "kernel: ", source.signature.name,
         " cannot run on the SIMT device: there is no C++ compiler (g++, clang++ or c++) in the "
         "folders of PATH; install g++, or run the kernel on a GPU, which needs none");
  const HostProgram program = make_program(source, *compiler);
  if (const auto entry = all.disk.load(program.key, kArch)) {
    try {
      const simt::Body body = load(program, entry->image);
      ++all.counters.disk_hits;
      return body;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::compile) throw;
      all.disk.reject(program.key);  // as after the library moved
    }
  }
  const CacheEntry entry = compile(program, *compiler);
  ++all.counters.compiles;
  const simt::Body body = load(program, entry.image);
  all.disk.store(program.key, entry);
  return body;
}

}  // namespace

std::optional<HostCompiler> find_host_compiler(std::string_view search_path) {
  for (const std::string_view name : {"g++", "clang++", "c++"}) {
    for (std::string_view rest = search_path; !rest.empty();) {
      const size_t end = rest.find(':');
      const std::string path = join(rest.substr(0, end), "/", name);
      rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
      struct stat info{};
      if (path.front() != '/' || stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
          access(path.c_str(), X_OK) != 0)
        continue;
      return HostCompiler{path, info.st_size,
                          int64_t(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec};
    }
  }
  return std::nullopt;
}

simt::Body host_body(const UserSource& source) {
  Bodies& all = bodies();
  const std::lock_guard lock(all.mutex);
  if (const auto known = all.loaded.find(&source); known != all.loaded.end()) return known->second;
  const simt::Body body = find(all, source);
  all.loaded.emplace(&source, body);
  return body;
}

HostCounters host_counters() {
  const std::lock_guard lock(bodies().mutex);
  return bodies().counters;
}

void clear_host_bodies() {
  const std::lock_guard lock(bodies().mutex);
  bodies().loaded.clear();
}

}  // namespace tensorcraft::jit

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/nvrtc.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/prefixes.hpp"
#include "tensorcraft/core/with_stack.hpp"
#include "tensorcraft/cuda/driver.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>

namespace tensorcraft::cuda {
namespace {

namespace fs = std::filesystem;

struct Program;

// The calls of NVRTC that are used, by its binary interface. Each returns 0 on success.
struct Nvrtc {
  int (*version)(int*, int*);
  int (*num_architectures)(int*);
  int (*architectures)(int*);
  int (*create)(Program**, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile)(Program*, int, const char* const*);
  int (*destroy)(Program**);
  int (*cubin_size)(Program*, size_t*);
  int (*cubin)(Program*, char*);
  int (*ptx_size)(Program*, size_t*);
  int (*ptx)(Program*, char*);
  int (*log_size)(Program*, size_t*);
  int (*log)(Program*, char*);
  const char* (*error_string)(int);
};

struct Library {
  Nvrtc calls{};
  std::string path;
  std::string problem;  // why there is none; empty when it works
  NvrtcVersion version;
  std::vector<int> architectures;
};

template <class F>
bool find(void* library, F& function, const char* name) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

bool load(void* library, Nvrtc& n) {
  return find(library, n.version, "nvrtcVersion") &&
         find(library, n.num_architectures, "nvrtcGetNumSupportedArchs") &&
         find(library, n.architectures, "nvrtcGetSupportedArchs") &&
         find(library, n.create, "nvrtcCreateProgram") &&
         find(library, n.compile, "nvrtcCompileProgram") &&
         find(library, n.destroy, "nvrtcDestroyProgram") &&
         find(library, n.cubin_size, "nvrtcGetCUBINSize") &&
         find(library, n.cubin, "nvrtcGetCUBIN") && find(library, n.ptx_size, "nvrtcGetPTXSize") &&
         find(library, n.ptx, "nvrtcGetPTX") &&
         find(library, n.log_size, "nvrtcGetProgramLogSize") &&
         find(library, n.log, "nvrtcGetProgramLog") &&
         find(library, n.error_string, "nvrtcGetErrorString");
}

// "libnvrtc.so", "libnvrtc.so.13": not the builtins, not the alternative build.
bool is_nvrtc(const std::string& name) {
  constexpr std::string_view stem = "libnvrtc.so";
  return name.starts_with(stem) &&
         name.find_first_not_of(".0123456789", stem.size()) == std::string::npos;
}

// Appends NVRTC's files in a folder, the longest version name first.
void add_folder(std::vector<std::string>& files, const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (is_nvrtc(entry.path().filename())) found.push_back(entry.path());
  std::ranges::sort(found, std::greater());
  files.insert(files.end(), found.begin(), found.end());
}

// The folders in `parent` whose names start with `prefix`, the highest first.
std::vector<fs::path> subfolders(const fs::path& parent, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error))
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
  std::ranges::sort(found, std::greater());
  return found;
}

// Places that NVRTC may be in, in the order of the header. A configured place is the only one.
std::vector<std::string> candidates(const std::string& configured) {
  std::vector<std::string> files;
  if (!configured.empty()) {
    std::error_code error;
    if (fs::is_directory(configured, error))
      add_folder(files, configured);
    else
      files.push_back(configured);
    return files;
  }
  add_folder(files, own_folder());
  for (const fs::path& prefix : prefixes())
    for (const fs::path& packages : site_packages(prefix))
      for (const fs::path& package : subfolders(packages / "nvidia", ""))
        add_folder(files, package / "lib");
  for (const fs::path& toolkit : subfolders("/usr/local", "cuda"))
    add_folder(files, toolkit / "lib64");
  add_folder(files, "/opt/cuda/lib64");
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
    files.push_back(name);
  return files;
}

// NVRTC opens its built-ins by name alone at the first compile, which finds them in a Python
// package only when they are loaded already.
void load_builtins(const fs::path& folder) {
  constexpr std::string_view stem = "libnvrtc-builtins.so.";
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(stem) && !entry.is_symlink())
      dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  }
}

bool open(const std::string& file, Library& library) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return false;
  if (fs::path(file).has_parent_path()) load_builtins(fs::path(file).parent_path());
  NvrtcVersion version;
  int count = 0;
  if (!load(handle, library.calls) || library.calls.version(&version.major, &version.minor) ||
      library.calls.num_architectures(&count) || count <= 0) {
    dlclose(handle);
    return false;
  }
  library.architectures.resize(size_t(count));
  if (library.calls.architectures(library.architectures.data())) return false;
  std::ranges::sort(library.architectures);
  library.version = version;
  Dl_info info{};
  const auto* inside = reinterpret_cast<const void*>(library.calls.version);
  library.path = dladdr(inside, &info) && info.dli_fname ? info.dli_fname : file;
  return true;
}

// A driver refuses PTX of an NVRTC newer than itself, so an older one is preferred.
bool newer_than_driver(NvrtcVersion version) {
  const int driver = driver_version();
  return driver > 0 && version.major * 1000 + version.minor * 10 > driver;
}

Library find_library() {
  const std::string configured = config().nvrtc;
  Library newer;
  for (const std::string& file : candidates(configured)) {
    Library library;
    if (!open(file, library)) continue;
    if (!newer_than_driver(library.version)) return library;
    if (newer.path.empty()) newer = library;
  }
  if (!newer.path.empty()) return newer;
  Library none;
  none.problem = configured.empty()
                     ? "NVRTC JIT compiler not available\n  libnvrtc.so was found neither beside "
                       "TensorCraft nor in Python's nvidia packages, a CUDA toolkit or the system; "
                       "install the Python package nvidia-cuda-nvrtc, or set TENSORCRAFT_NVRTC to "
                       "the file or its folder"
                     : "NVRTC JIT compiler not available\n  TENSORCRAFT_NVRTC is \"" + configured +
                           "\" and no usable libnvrtc.so is there; name the file or its folder";
  return none;
}

Library* open_library() {
  return new Library(with_stack("NVRTC", kAmpleStack, [] { return find_library(); }));
}

const Library& library() {
  // The lock is for forks: the child of one cannot wait for a thread that opens the library.
  static constinit FirstMade<ForkSafeMutex> mutex;
  const std::lock_guard lock(*mutex);
  static constinit FirstMade<const Library, open_library> found;
  return *found;
}

const Library& require_library() {
  const Library& found = library();
  if (!found.problem.empty()) fail(ErrorKind::unsupported, found.problem);
  return found;
}

void check_nvrtc(const Nvrtc& n, int status, std::string_view call) {
  if (status != 0) fail(ErrorKind::internal, call, ": ", n.error_string(status), " (", status, ")");
}

// Text or binary that NVRTC hands out as a size and a copy.
std::string fetch(const Nvrtc& n, Program* program, int (*size_of)(Program*, size_t*),
                  int (*copy)(Program*, char*), std::string_view call) {
  size_t size = 0;
  check_nvrtc(n, size_of(program, &size), call);
  std::string bytes(size, '\0');
  if (size > 0) check_nvrtc(n, copy(program, bytes.data()), call);
  return bytes;
}

void strip_nuls(std::string& text) {
  while (!text.empty() && text.back() == '\0') text.pop_back();
}

// A real architecture gives machine code, a virtual one PTX.
bool wants_ptx(std::span<const std::string> options) {
  return std::ranges::any_of(options, [](const std::string& option) {
    return option.find("=compute_") != std::string::npos;
  });
}

struct ProgramOwner {
  const Nvrtc& n;
  Program* program = nullptr;
  ~ProgramOwner() {
    if (program) n.destroy(&program);
  }
};

// A compile frees most of what it allocates, which glibc gives back to the system and takes again
// page by page: 4 ms of 80. Once a program has freed a mapped block of this size, as any that works
// with large arrays does, glibc keeps up to twice as much in each arena (mallopt(3),
// M_MMAP_THRESHOLD), unless its settings say otherwise. Other allocators take no notice.
void keep_freed_memory() {
  constexpr size_t kBytes = size_t{16} << 20;
  static std::atomic<bool> is_freed = false;
  if (is_freed.exchange(true)) return;
  void* const volatile block = std::malloc(kBytes);
  std::free(block);
}

}  // namespace

bool nvrtc_available() { return library().problem.empty(); }
std::string nvrtc_problem() { return library().problem; }
std::string nvrtc_path() { return library().path; }
NvrtcVersion nvrtc_version() { return library().version; }
std::span<const int> nvrtc_architectures() { return library().architectures; }

namespace {

NvrtcResult compile_here(const std::string& source, const std::string& name,
                         std::span<const std::pair<const char*, const char*>> headers,
                         std::span<const std::string> options) {
  const Nvrtc& n = require_library().calls;
  std::vector<const char*> names, texts, flags;
  for (const auto& [header, text] : headers) {
    names.push_back(header);
    texts.push_back(text);
  }
  for (const std::string& option : options) flags.push_back(option.c_str());
  keep_freed_memory();

  ProgramOwner owner{n};
  check_nvrtc(n,
              n.create(&owner.program, source.c_str(), name.c_str(), int(headers.size()),
                       texts.data(), names.data()),
              "nvrtcCreateProgram");
  NvrtcResult result;
  result.ok = n.compile(owner.program, int(flags.size()), flags.data()) == 0;
  result.log = fetch(n, owner.program, n.log_size, n.log, "nvrtcGetProgramLog");
  strip_nuls(result.log);
  if (!result.ok) return result;
  if (wants_ptx(options)) {
    result.image = fetch(n, owner.program, n.ptx_size, n.ptx, "nvrtcGetPTX");
    strip_nuls(result.image);
  } else {
    result.image = fetch(n, owner.program, n.cubin_size, n.cubin, "nvrtcGetCUBIN");
  }
  return result;
}

}  // namespace

NvrtcResult nvrtc_compile(const std::string& source, const std::string& name,
                          std::span<const std::pair<const char*, const char*>> headers,
                          std::span<const std::string> options) {
  return with_stack("NVRTC", kAmpleStack,
                    [&] { return compile_here(source, name, headers, options); });
}

}  // namespace tensorcraft::cuda

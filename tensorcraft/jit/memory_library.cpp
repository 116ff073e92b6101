// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/memory_library.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/version.hpp"
#include "tensorcraft/simt/instrumentation.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <utility>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tensorcraft::jit {
namespace {

// Held while the loader is changed, whose own lists a fork in the middle would leave half done.
// Recursive, as what a library does when it is loaded may load another.
std::recursive_mutex& loading() {
  static constinit FirstMade<ForkSafe<std::recursive_mutex>> one;
  return *one;
}

// A path of a descriptor that no library had before. The loader takes a library of an equal path
// for loaded, and descriptors are used again: so each has other repetitions of "/" and "./", the
// bits of a count.
std::string unique_path(int file) {
  static std::atomic<uint32_t> count = 0;
  std::string path = join("/proc/", getpid(), "/fd");
  for (uint32_t bits = ++count; bits; bits >>= 1) path += bits & 1 ? "/." : "/";
  return join(path, "/", file);
}

}  // namespace

MemoryLibrary::MemoryLibrary(const std::string& name, std::string_view image, std::string_view what)
    : file_(memfd_create(name.c_str(), MFD_CLOEXEC)) {
  if (file_ < 0)
    fail(ErrorKind::io, what, ": no memory file for ", name, ": ", std::strerror(errno));
  for (size_t done = 0; done < image.size();) {
    const ssize_t n = write(file_, image.data() + done, image.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int why = errno;
      close();
      fail(ErrorKind::io, what, ": cannot write ", name, ": ", std::strerror(why));
    }
    done += size_t(n);
  }
  const std::lock_guard alone(loading());
  handle_ = dlopen(unique_path(file_).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_) {
    if (!simt::is_race_library()) ::close(std::exchange(file_, -1));
    return;
  }
  const char* const why = dlerror();
  const std::string text = why ? why : "the loader does not say why";
  close();
  fail(ErrorKind::compile, what, ": ", name, " cannot be loaded: ", text);
}

void* MemoryLibrary::symbol(const std::string& name) const { return dlsym(handle_, name.c_str()); }

void MemoryLibrary::close() {
  const std::lock_guard alone(loading());
  if (handle_) dlclose(handle_);
  if (file_ >= 0) ::close(file_);
  handle_ = nullptr;
  file_ = -1;
}

std::string own_library() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void*>(&version), &info) || !info.dli_fname) return {};
  const std::string path = info.dli_fname;
  return path.find(".so") == path.npos ? std::string() : std::filesystem::absolute(path).string();
}

}  // namespace tensorcraft::jit

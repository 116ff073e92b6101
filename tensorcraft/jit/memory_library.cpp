// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/memory_library.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/version.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tensorcraft::jit {

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
  const std::string path = join("/proc/", getpid(), "/fd/", file_);
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_) return;
  const char* const why = dlerror();
  const std::string text = why ? why : "the loader does not say why";
  close();
  fail(ErrorKind::compile, what, ": ", name, " cannot be loaded: ", text);
}

void* MemoryLibrary::symbol(const std::string& name) const { return dlsym(handle_, name.c_str()); }

void MemoryLibrary::close() {
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

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/safetensors/input_file.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/runtime/safetensors/refusal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace tensorcraft::safetensors {
namespace {

[[noreturn]] void fail_call(const std::string& path, const char* call, int error) {
  const bool missing = error == ENOENT || error == ENOTDIR;
  fail(missing ? ErrorKind::not_found : ErrorKind::io, "safetensors: ", path, ": ", call,
       " failed: ", std::generic_category().message(error));
}

[[noreturn]] void fail_changed(const std::string& path, const char* how) {
  fail(ErrorKind::io, "safetensors: ", path, ": ", how,
       " since it was opened; open it again when nothing writes to it [",
       to_string(Refusal::changed_while_reading), "]");
}

}  // namespace

// O_NONBLOCK lets a pipe be refused below; without it open() would wait for a writer.
InputFile::InputFile(const std::string& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) fail_call(path_, "open", errno);
  try {
    identity_ = identity_of_open_file();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

InputFile::~InputFile() { ::close(descriptor_); }

InputFile::Identity InputFile::identity_of_open_file() const {
  struct stat s;
  if (::fstat(descriptor_, &s) != 0) fail_call(path_, "fstat", errno);
  if (!S_ISREG(s.st_mode)) fail(ErrorKind::io, "safetensors: ", path_, ": not a regular file");
  return {uint64_t(s.st_size), s.st_dev, s.st_ino,
          s.st_mtim.tv_sec * int64_t(1'000'000'000) + s.st_mtim.tv_nsec};
}

void InputFile::read(void* to, size_t bytes, uint64_t offset) const {
  constexpr size_t kMaxPerCall = size_t(1) << 30;  // the kernel stops a read just below 2 GiB
  for (size_t done = 0; done < bytes;) {
    const ssize_t got = ::pread(descriptor_, static_cast<char*>(to) + done,
                                std::min(bytes - done, kMaxPerCall), off_t(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_call(path_, "pread", errno);
    if (got == 0)
      fail(ErrorKind::io, "safetensors: ", path_, ": ", bytes, " bytes at offset ", offset,
           " were expected, the file gave ", done, "; it was truncated while it was read [",
           to_string(Refusal::short_read), "]");
    done += size_t(got);
  }
}

void InputFile::check_unchanged() const {
  if (!(identity_of_open_file() == identity_)) fail_changed(path_, "it changed");
  struct stat s;
  if (::stat(path_.c_str(), &s) != 0 || s.st_ino != identity_.inode || s.st_dev != identity_.device)
    fail_changed(path_, "another file took its place, or it was removed,");
}

}  // namespace tensorcraft::safetensors

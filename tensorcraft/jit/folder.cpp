// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/folder.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/log.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

namespace tensorcraft::jit {
namespace {

constexpr std::string_view kTemporaryPrefix = "tmp-";
constexpr time_t kTemporaryLifetime = 3600;  // seconds

// Owns a file descriptor.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

bool only_ours(const struct stat& status) {
  return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(size_t(n));
  }
  return true;
}

bool read_all(int file, size_t size, std::string& bytes) {
  bytes.resize(size);
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::read(file, bytes.data() + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += size_t(n);
  }
  return true;
}

std::string temporary_name() {
  static std::atomic<unsigned> counter = 0;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  // Process ids repeat across hosts that share a folder, so the time is part of the name.
  return join(kTemporaryPrefix, getpid(), "-", counter++, "-", now.tv_sec, now.tv_nsec);
}

}  // namespace

CacheFolder::CacheFolder(std::string path) : path_(std::move(path)) {}

void CacheFolder::warn_once(std::string_view problem) {
  if (warned_.exchange(true)) return;
  log_warn(join("kernel cache ", path_, " ", problem,
                "; kernels are kept in memory only. Set TENSORCRAFT_CACHE_DIR to a folder that you "
                "own."));
}

int CacheFolder::open_folder(bool create) {
  if (path_.empty()) return -1;
  if (create) {
    std::error_code ignored;  // the open below says what is wrong
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
    mkdir(path_.c_str(), 0700);
  }
  File folder(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) {
    const int error = errno;
    const bool link = error == ELOOP || error == ENOTDIR;
    if (create || error != ENOENT) {
      warn_once(link ? "is a symbolic link or no folder"
                     : join("cannot be opened (", std::strerror(error), ")"));
    }
    return -1;
  }
  struct stat status;
  if (fstat(folder.get(), &status) != 0 || !only_ours(status)) {
    warn_once("has another owner or is writable for others");
    return -1;
  }
  return folder.release();
}

CacheFolder::ReadResult CacheFolder::read(const std::string& name, std::string& bytes) {
  const File folder(open_folder(false));
  if (!folder) return ReadResult::absent;
  // O_NONBLOCK: a FIFO under the name of an entry must not hang the caller.
  const File file(
      openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file) return errno == ENOENT ? ReadResult::absent : ReadResult::refused;
  struct stat status;
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || !only_ours(status) ||
      !read_all(file.get(), size_t(status.st_size), bytes)) {
    return ReadResult::refused;
  }
  futimens(file.get(), nullptr);  // the order of use; a read-only folder needs none
  return ReadResult::done;
}

bool CacheFolder::write_temporary(int folder, const std::string& temporary,
                                  std::string_view bytes) {
  const File file(openat(folder, temporary.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  return file && write_all(file.get(), bytes) && fsync(file.get()) == 0;
}

bool CacheFolder::write(const std::string& name, std::string_view bytes) {
  const File folder(open_folder(true));
  if (!folder) return false;
  const std::string temporary = temporary_name();
  if (write_temporary(folder.get(), temporary, bytes) &&
      renameat(folder.get(), temporary.c_str(), folder.get(), name.c_str()) == 0) {
    return true;
  }
  warn_once(join("cannot be written (", std::strerror(errno), ")"));
  unlinkat(folder.get(), temporary.c_str(), 0);
  return false;
}

void CacheFolder::remove(const std::string& name) {
  const File folder(open_folder(false));
  if (folder) unlinkat(folder.get(), name.c_str(), 0);
}

size_t CacheFolder::trim(std::string_view suffix, size_t max_bytes) {
  File folder(open_folder(false));
  DIR* const list = folder ? fdopendir(folder.get()) : nullptr;
  if (!list) return 0;
  const int descriptor = folder.release();  // closedir() closes it

  struct Candidate {
    timespec used;
    size_t bytes;
    std::string name;
  };
  std::vector<Candidate> candidates;
  size_t total = 0;
  const time_t now = time(nullptr);
  while (const dirent* item = readdir(list)) {
    const std::string_view name = item->d_name;
    struct stat status;
    if (fstatat(descriptor, item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (name.starts_with(kTemporaryPrefix) && now - status.st_mtime > kTemporaryLifetime) {
      unlinkat(descriptor, item->d_name, 0);
    } else if (name.ends_with(suffix)) {
      candidates.push_back({status.st_mtim, size_t(status.st_size), item->d_name});
      total += size_t(status.st_size);
    }
  }
  if (total > max_bytes) {
    std::ranges::sort(candidates, {}, [](const Candidate& candidate) {
      return std::pair(candidate.used.tv_sec, candidate.used.tv_nsec);
    });
    for (const Candidate& candidate : candidates) {
      if (total <= max_bytes / 8 * 7) break;
      if (unlinkat(descriptor, candidate.name.c_str(), 0) == 0) total -= candidate.bytes;
    }
  }
  closedir(list);
  return total;
}

CacheFolder::Lock::Lock(CacheFolder& folder, const std::string& name,
                        std::chrono::milliseconds timeout) {
  const File directory(folder.open_folder(true));
  if (!directory) return;
  file_ = openat(directory.get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file_ < 0) return;
  const auto end = std::chrono::steady_clock::now() + timeout;
  auto pause = std::chrono::microseconds(500);
  while (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return;  // a file system without locks
    if (std::chrono::steady_clock::now() >= end) return;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(8000));
  }
  held_ = true;
}

CacheFolder::Lock::~Lock() {
  if (file_ >= 0) close(file_);  // releases the lock
}

}  // namespace tensorcraft::jit

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/folder.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
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
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace tensorcraft::jit {
namespace {

// Seconds after which a temporary file is abandoned: in any case, and if its writer's lock is free.
constexpr time_t kTemporaryLifetime = 3600, kUnlockedLifetime = 60;

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
  return join(CacheFolder::kTemporaryPrefix, getpid(), "-", counter++, "-", now.tv_sec,
              now.tv_nsec);
}

// A new file with the bytes on disk. It is locked while it is written, so that a file without a
// lock is one whose writer was killed.
bool write_file(int folder, const std::string& name, std::string_view bytes) {
  const File file(
      openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return false;
  flock(file.get(), LOCK_EX | LOCK_NB);
  return write_all(file.get(), bytes) && fsync(file.get()) == 0;
}

bool is_orphan(int folder, const char* name, const struct stat& status) {
  const time_t age = time(nullptr) - status.st_mtime;
  if (age > kTemporaryLifetime) return true;
  if (age <= kUnlockedLifetime || !S_ISREG(status.st_mode)) return false;
  const File file(openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  return file && flock(file.get(), LOCK_EX | LOCK_NB) == 0;
}

// Calls `visit(folder, name, status)` for every file; takes the descriptor.
template <class Visit>
void for_each_file(int descriptor, Visit visit) {
  DIR* const list = descriptor < 0 ? nullptr : fdopendir(descriptor);
  if (!list) {
    if (descriptor >= 0) close(descriptor);
    return;
  }
  while (const dirent* item = readdir(list)) {
    struct stat status;
    if (fstatat(descriptor, item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISDIR(status.st_mode)) visit(descriptor, item->d_name, status);
  }
  closedir(list);
}

// Opens a folder that is only ours; else says in `problem` what is wrong, and in `error` the errno.
int open_checked(const std::string& path, std::string& problem, int& error) {
  File folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  error = folder ? 0 : errno;
  struct stat status;
  if (error == ELOOP || error == ENOTDIR) {
    problem = "is a symbolic link or no folder";
  } else if (error != 0) {
    problem = join("cannot be opened (", std::strerror(error), ")");
  } else if (fstat(folder.get(), &status) != 0 || !only_ours(status)) {
    problem = "has another owner or is writable for others";
  } else {
    return folder.release();
  }
  return -1;
}

// The open files of locks. A child of a fork has them too, and a lock is free once all who have its
// file closed it: so the child does at once.
struct LockFiles {
  ForkSafeMutex mutex;
  std::set<int> open;
  const InForkedChild close_all{[this] {
    for (const int file : open) close(file);
    open.clear();
  }};
};
LockFiles& lock_files() {
  static constinit FirstMade<LockFiles> one;
  return *one;
}

int open_lock(int folder, const std::string& name) {
  LockFiles& all = lock_files();
  const std::lock_guard lock(all.mutex);
  const int file = openat(folder, name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file >= 0) all.open.insert(file);
  return file;
}

void close_lock(int file) {
  LockFiles& all = lock_files();
  const std::lock_guard lock(all.mutex);
  all.open.erase(file);
  close(file);
}

}  // namespace

CacheFolder::CacheFolder(std::string path) : path_(std::move(path)) {}

void CacheFolder::warn_once(std::string_view problem) {
  if (warned_.exchange(true)) return;
  log_warn(join("kernel cache ", path_, path_.empty() ? "" : " ", problem,
                "; kernels are kept in memory only. Set TENSORCRAFT_CACHE_DIR to a folder that you "
                "own."));
}

void CacheFolder::warn_about_locks(int error) {
  if (warned_about_locks_.exchange(true)) return;
  log_warn(join("kernel cache ", path_, " is on a file system without locks (",
                std::strerror(error), "); several processes may compile the same kernel."));
}

std::string CacheFolder::problem() const {
  if (path_.empty()) return "there is no home folder and TENSORCRAFT_CACHE_DIR is not set";
  std::string problem;
  int error = 0;
  const File folder(open_checked(path_, problem, error));
  return error == ENOENT ? std::string() : problem;
}

int CacheFolder::open_folder(bool create) {
  if (path_.empty()) {
    if (create) warn_once("has no place: " + problem());
    return -1;
  }
  int made = 0;
  if (create) {
    std::error_code ignored;  // what follows says what is wrong
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
    if (mkdir(path_.c_str(), 0700) != 0) made = errno;
  }
  std::string problem;
  int error = 0;
  const int folder = open_checked(path_, problem, error);
  if (folder < 0 && error == ENOENT && create)
    warn_once(join("cannot be created (", std::strerror(made), ")"));
  else if (folder < 0 && error != ENOENT)
    warn_once(problem);
  return folder;
}

CacheFolder::ReadResult CacheFolder::peek(const std::string& name, std::string& bytes,
                                          size_t max_bytes) {
  const File folder(open_folder(false));
  if (!folder) return ReadResult::absent;
  // O_NONBLOCK: a FIFO under the name of an entry must not hang the caller.
  const File file(
      openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file) return errno == ENOENT ? ReadResult::absent : ReadResult::refused;
  struct stat status;
  // A second name of the file could change it without the first one's user knowing.
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || !only_ours(status) ||
      status.st_nlink > 1 || size_t(status.st_size) > kMaxFileBytes ||
      !read_all(file.get(), std::min(size_t(status.st_size), max_bytes), bytes)) {
    return ReadResult::refused;
  }
  return ReadResult::done;
}

CacheFolder::ReadResult CacheFolder::read(const std::string& name, std::string& bytes) {
  const ReadResult result = peek(name, bytes);
  const File folder(result == ReadResult::done ? open_folder(false) : -1);
  // The order of use; a read-only folder needs none.
  if (folder) utimensat(folder.get(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  return result;
}

// After a failed call, whose errno the caller still finds.
void CacheFolder::give_up_on(int folder, const std::string& temporary) {
  const int error = errno;
  warn_once(join("cannot be written (", std::strerror(error), ")"));
  unlinkat(folder, temporary.c_str(), 0);
  errno = error;
}

std::string CacheFolder::stage(std::string_view bytes) {
  const File folder(open_folder(true));
  if (!folder) return {};
  std::string temporary = temporary_name();
  if (write_file(folder.get(), temporary, bytes)) return temporary;
  give_up_on(folder.get(), temporary);
  return {};
}

bool CacheFolder::publish(const std::string& temporary, const std::string& name) {
  const File folder(open_folder(true));
  if (!folder) return false;
  if (renameat(folder.get(), temporary.c_str(), folder.get(), name.c_str()) == 0) return true;
  give_up_on(folder.get(), temporary);
  return false;
}

bool CacheFolder::write(const std::string& name, std::string_view bytes) {
  const std::string temporary = stage(bytes);
  return !temporary.empty() && publish(temporary, name);
}

bool CacheFolder::remove(const std::string& name) {
  const File folder(open_folder(false));
  // An empty folder under the name of an entry would keep it from being written for ever.
  return folder && (unlinkat(folder.get(), name.c_str(), 0) == 0 ||
                    unlinkat(folder.get(), name.c_str(), AT_REMOVEDIR) == 0);
}

std::vector<CacheFolder::FileInfo> CacheFolder::list(std::string_view prefix,
                                                     std::string_view suffix) {
  std::vector<FileInfo> files;
  for_each_file(open_folder(false), [&](int, std::string_view name, const struct stat& status) {
    if (!name.starts_with(prefix) || !name.ends_with(suffix)) return;
    const int64_t used_ns = int64_t(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
    files.push_back({std::string(name), size_t(status.st_size), used_ns});
  });
  std::ranges::sort(files, std::greater(), &FileInfo::used_ns);
  return files;
}

void CacheFolder::remove_orphans() {
  for_each_file(open_folder(false), [](int folder, const char* name, const struct stat& status) {
    if (std::string_view(name).starts_with(kTemporaryPrefix) && is_orphan(folder, name, status))
      unlinkat(folder, name, 0);
  });
}

size_t CacheFolder::trim(std::string_view suffix, size_t max_bytes) {
  remove_orphans();
  const std::vector<FileInfo> files = list("", suffix);
  size_t total = 0;
  for (const FileInfo& file : files) total += file.bytes;
  if (total <= max_bytes) return total;
  const File folder(open_folder(false));
  if (!folder) return 0;
  for (auto file = files.rbegin(); file != files.rend() && total > max_bytes / 8 * 7; ++file) {
    // A file that another process removed at the same time is gone as well.
    if (unlinkat(folder.get(), file->name.c_str(), 0) == 0 || errno == ENOENT) total -= file->bytes;
  }
  return total;
}

CacheFolder::Lock::Lock(CacheFolder& folder, const std::string& name,
                        std::chrono::milliseconds timeout) {
  const File directory(folder.open_folder(true));
  if (!directory) return;
  file_ = open_lock(directory.get(), name);
  if (file_ < 0) return;
  const auto end = std::chrono::steady_clock::now() + timeout;
  auto pause = std::chrono::microseconds(500);
  while (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      folder.warn_about_locks(errno);
      return;
    }
    if (std::chrono::steady_clock::now() >= end) return;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(8000));
  }
  held_ = true;
}

CacheFolder::Lock::~Lock() {
  if (file_ >= 0) close_lock(file_);
}

}  // namespace tensorcraft::jit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::jit {

// A flat folder of files that only this user may write. Loading a file from it is loading code, so
// a folder or file that is a link, has another owner or is writable for others is never read.
// Nothing here throws: what cannot be done is reported by the result, and once in the log.
class CacheFolder {
 public:
  // An empty path means there is no folder: every read is absent, every write fails.
  explicit CacheFolder(std::string path);
  const std::string& path() const { return path_; }
  // Why the folder is not used; empty if it is, or is not there yet.
  std::string problem() const;

  // No entry is larger; what is was not written by this library.
  static constexpr size_t kMaxFileBytes = size_t(256) << 20;

  enum class ReadResult { absent, refused, done };
  // The whole file into `bytes`; marks it as used now.
  ReadResult read(const std::string& name, std::string& bytes);
  // At most the first `max_bytes` of a file, without marking it.
  ReadResult peek(const std::string& name, std::string& bytes, size_t max_bytes = kMaxFileBytes);
  // Readers see the old file or the whole new one: temporary file, fsync, rename.
  bool write(const std::string& name, std::string_view bytes);
  // The two halves of write(). The first returns the temporary file's name, empty if it fails.
  std::string stage(std::string_view bytes);
  bool publish(const std::string& temporary, const std::string& name);
  // True if a file was removed.
  bool remove(const std::string& name);

  struct FileInfo {
    std::string name;
    size_t bytes = 0;
    int64_t used_ns = 0;  // since 1970
  };
  // The files that start and end so, the one used last first.
  std::vector<FileInfo> list(std::string_view prefix, std::string_view suffix);
  static constexpr std::string_view kTemporaryPrefix = "tmp-";

  // Removes the files ending in `suffix` that were unused for longest, down to 7/8 of `max_bytes`,
  // when together they are larger; and what killed writers left. Returns the bytes left.
  size_t trim(std::string_view suffix, size_t max_bytes);
  // Removes temporary files that are no longer written: unlocked for a minute, or an hour old if
  // locks do not work.
  void remove_orphans();

  // Held by at most one process and thread at a time, and by none after a time-out or if locks do
  // not work. It only saves work; correctness must not depend on it.
  class Lock {
   public:
    Lock(CacheFolder& folder, const std::string& name, std::chrono::milliseconds timeout);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    bool held() const { return held_; }

   private:
    int file_ = -1;
    bool held_ = false;
  };

 private:
  int open_folder(bool create);
  void give_up_on(int folder, const std::string& temporary);
  void warn_once(std::string_view problem);
  void warn_about_locks(int error);

  const std::string path_;
  std::atomic<bool> warned_ = false, warned_about_locks_ = false;
};

}  // namespace tensorcraft::jit

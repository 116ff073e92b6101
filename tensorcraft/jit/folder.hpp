// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace tensorcraft::jit {

// A flat folder of files that only this user may write. Loading a file from it is loading code, so
// a folder or file that is a link, has another owner or is writable for others is never read.
// Nothing here throws: what cannot be done is reported by the result, and once in the log.
class CacheFolder {
 public:
  // An empty path means there is no folder: every read is absent, every write fails silently.
  explicit CacheFolder(std::string path);
  const std::string& path() const { return path_; }

  enum class ReadResult { absent, refused, done };
  // The whole file into `bytes`; marks it as used now.
  ReadResult read(const std::string& name, std::string& bytes);
  // Readers see the old file or the whole new one: temporary file, fsync, rename.
  bool write(const std::string& name, std::string_view bytes);
  void remove(const std::string& name);
  // Removes the files ending in `suffix` that were unused for longest, down to 7/8 of `max_bytes`,
  // when together they are larger; and temporary files older than an hour. Returns the bytes left.
  size_t trim(std::string_view suffix, size_t max_bytes);

  // Held by at most one process and thread at a time, and by none after a time-out or where locks
  // do not work: whoever needs more than thrift must not rely on it.
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
  bool write_temporary(int folder, const std::string& temporary, std::string_view bytes);
  void warn_once(std::string_view problem);

  const std::string path_;
  std::atomic<bool> warned_ = false;
};

}  // namespace tensorcraft::jit

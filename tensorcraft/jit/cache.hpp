// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/jit/folder.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tensorcraft::jit {

// One compiled kernel as it is kept.
struct CacheEntry {
  std::string signature;  // for people
  std::string arch;       // what the image is for, with its suffix: "sm_90a"
  std::string options;    // what the compiler was told, one option a line
  std::string image, log;
  int64_t created = 0;  // seconds since 1970
  double milliseconds = 0;
};

// The version of the file layout and of what is hashed into a key.
inline constexpr uint32_t kCacheFormat = 1;
inline constexpr size_t kDefaultCacheBytes = size_t(1) << 30;

// Entries are files named by the key, 64 hexadecimal digits.
inline constexpr std::string_view kEntrySuffix = ".kernel";
std::string entry_file(std::string_view key);

// An entry as the bytes of a file, and back; nullopt if anything at all does not match.
std::string encode_entry(const CacheEntry& entry, std::string_view key);
std::optional<CacheEntry> decode_entry(std::string_view bytes, std::string_view key,
                                       std::string_view arch);

// Decodes bytes that say themselves which key they belong to.
struct KeyedEntry {
  std::string key;
  CacheEntry entry;
};
std::optional<KeyedEntry> decode_any_entry(std::string_view bytes);
// All but the options, image and log, from the first bytes of a file; nothing is verified.
inline constexpr size_t kHeadBytes = 4096;
std::optional<KeyedEntry> decode_entry_head(std::string_view first_bytes);

// Compiled kernels on disk, one file each. Shared by threads and processes. A damaged or foreign
// entry is a miss; a folder that cannot be used makes every look-up a miss; neither is ever an
// error.
class DiskCache {
 public:
  explicit DiskCache(std::string folder, size_t max_bytes = kDefaultCacheBytes);

  std::optional<CacheEntry> load(const std::string& key, std::string_view arch);
  bool store(const std::string& key, const CacheEntry& entry);
  // Removes an entry that proved to be wrong, and counts it.
  void reject(const std::string& key);
  // Held while compiling `key`, so that others wait and then load. After the time-out it is not
  // held, and the caller compiles for itself.
  CacheFolder::Lock lock(const std::string& key, std::chrono::milliseconds timeout);

  CacheFolder& folder() { return folder_; }
  long bad_entries() const { return bad_entries_; }

 private:
  CacheFolder folder_;
  const size_t max_bytes_;
  std::atomic<long> bad_entries_ = 0;
  std::atomic<size_t> bytes_until_trim_ = 0;
};

}  // namespace tensorcraft::jit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/jit/folder.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// The folder of compiled kernels as a whole: what is in it, whether it is sound, and bundles, which
// carry kernels to machines without NVRTC. The folder is config().cache_dir; every function here
// may run beside processes that compile and load.
namespace tensorcraft::jit {

// One compiled kernel in the folder.
struct CacheItem {
  std::string key;                // 64 hexadecimal digits, the file's name
  std::string signature;          // readable: operator, rung, dtypes, Config, architecture
  std::string arch;               // "sm_90a"
  size_t bytes = 0;               // of the file
  int64_t created = 0, used = 0;  // seconds since 1970
  double compile_ms = 0;          // that NVRTC took
};

// The folder as a whole.
struct CacheStat {
  std::string folder;   // empty if there is none: no home and no setting
  std::string problem;  // why the folder is not used; empty if it is, or is not there yet
  size_t entries = 0, bytes = 0, limit_bytes = 0;  // bytes of all entries
  size_t temporary_files = 0;  // being written, or left by a process that was killed
};
// Counts files without reading them. Never fails.
CacheStat cache_stat();

// Every entry whose head can be read, the one used last first. The order of use is not changed.
std::vector<CacheItem> cache_list();

// The result of cache_verify().
struct CacheCheck {
  size_t good = 0;                   // entries that match
  std::vector<std::string> removed;  // file names of what was damaged or foreign
};
// Reads every entry whole and removes those that do not match their name and hash.
CacheCheck cache_verify();

// Removes every entry and what killed processes left; loaded kernels stay loaded. Returns how many
// entries were removed.
size_t cache_clear();

// Is an entry wanted?
using CacheFilter = std::function<bool(const CacheItem&)>;
// Keeps the entries that processes with the setting `kernel_record` noted in a file. Kind not_found
// for a file that cannot be read, kind value for a line that is none of a record.
CacheFilter recorded_in(const std::string& path);
// Writes the entries that `filter` keeps (all without one) into one file, which replaces `path` as
// a whole. The bundle holds no path and no time of this machine and names the compilers that made
// its entries. Returns how many entries it holds. Kind io if the file cannot be written, kind
// not_found if nothing is kept.
size_t export_bundle(const std::string& path, const CacheFilter& filter = {});

// The result of import_bundle().
struct BundleImport {
  size_t imported = 0, already_there = 0;  // entries
};
// Checks the whole bundle, then puts its entries into the folder; on any error the folder is as it
// was. Afterwards its kernels run in processes without NVRTC. A bundle is code: import none that
// you would not run. Kind io for a file or folder that cannot be read or written, kind value for a
// damaged bundle or one larger than the folder's limit.
BundleImport import_bundle(const std::string& path);

// A kernel cache in any folder.
class KernelCache {
 public:
  // As the functions of these names.
  KernelCache(std::string folder, size_t limit_bytes);
  CacheStat stat();
  std::vector<CacheItem> list();
  CacheCheck verify();
  size_t clear();
  size_t export_bundle(const std::string& path, const CacheFilter& filter = {});
  BundleImport import_bundle(const std::string& path);

 private:
  CacheFolder folder_;
  const size_t limit_bytes_;
};

}  // namespace tensorcraft::jit

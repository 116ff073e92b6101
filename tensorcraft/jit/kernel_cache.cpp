// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/kernel_cache.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/jit/cache.hpp"

#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

namespace tensorcraft::jit {
namespace {

using enum CacheFolder::ReadResult;

KernelCache process_cache() { return {config().cache_dir, size_t(config().cache_limit_bytes)}; }

}  // namespace

CacheItem item_of(const KeyedEntry& found, const CacheFolder::FileInfo& file) {
  return {.key = found.key,
          .signature = found.entry.signature,
          .arch = found.entry.arch,
          .bytes = file.bytes,
          .created = found.entry.created,
          .used = file.used_ns / 1'000'000'000,
          .compile_ms = found.entry.milliseconds};
}

KernelCache::KernelCache(std::string folder, size_t limit_bytes)
    : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

CacheStat KernelCache::stat() {
  CacheStat stat{.folder = folder_.path(), .problem = folder_.problem()};
  stat.limit_bytes = limit_bytes_;
  for (const auto& file : folder_.list("", kEntrySuffix)) {
    ++stat.entries;
    stat.bytes += file.bytes;
  }
  stat.temporary_files = folder_.list(CacheFolder::kTemporaryPrefix, "").size();
  return stat;
}

std::vector<CacheItem> KernelCache::list() {
  std::vector<CacheItem> items;
  std::string head;
  for (const auto& file : folder_.list("", kEntrySuffix)) {
    if (folder_.peek(file.name, head, kHeadBytes) != done) continue;
    const auto found = decode_entry_head(head);
    if (found && entry_file(found->key) == file.name) items.push_back(item_of(*found, file));
  }
  return items;
}

CacheCheck KernelCache::verify() {
  CacheCheck check;
  std::string bytes;
  for (const auto& file : folder_.list("", kEntrySuffix)) {
    const auto result = folder_.peek(file.name, bytes);
    if (result == absent) continue;  // removed by another process since it was listed
    const auto found = result == done ? decode_any_entry(bytes) : std::nullopt;
    if (found && entry_file(found->key) == file.name)
      ++check.good;
    else if (folder_.remove(file.name))
      check.removed.push_back(file.name);
  }
  return check;
}

size_t KernelCache::clear() {
  size_t removed = 0;
  for (const auto& file : folder_.list("", kEntrySuffix)) removed += folder_.remove(file.name);
  folder_.remove_orphans();
  return removed;
}

CacheStat cache_stat() { return process_cache().stat(); }
std::vector<CacheItem> cache_list() { return process_cache().list(); }
CacheCheck cache_verify() { return process_cache().verify(); }
size_t cache_clear() { return process_cache().clear(); }
CacheFilter recorded_in(const std::string& path) {
  std::ifstream in(path);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))  // can be opened, but not read
    fail(ErrorKind::not_found, "kernel record ", path, " is a folder");
  if (!in) fail(ErrorKind::not_found, "kernel record ", path, " cannot be read");
  std::set<std::string> keys;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::string key = line.substr(0, line.find(' '));
    if (key.size() != 64 || key.find_first_not_of("0123456789abcdef") != key.npos)
      fail(ErrorKind::value, path, ":", number, ": it is no line of a kernel record: ", line);
    keys.insert(key);
  }
  return [keys = std::move(keys)](const CacheItem& item) { return keys.contains(item.key); };
}

size_t export_bundle(const std::string& path, const CacheFilter& filter) {
  return process_cache().export_bundle(path, filter);
}
BundleImport import_bundle(const std::string& path) { return process_cache().import_bundle(path); }

}  // namespace tensorcraft::jit

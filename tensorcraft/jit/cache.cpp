// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/cache.hpp"

#include "tensorcraft/core/hash.hpp"

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

namespace tensorcraft::jit {
namespace {

constexpr std::array<char, 8> kMagic{'T', 'C', 'K', 'E', 'R', 'N', 'E', 'L'};
constexpr size_t kKeyDigits = 64;

// A file is this, the five texts in this order, and the Hash128 of all bytes before it. Numbers are
// as the machine stores them: a cache folder belongs to one machine.
struct FileHead {
  std::array<char, 8> magic;
  uint32_t format;
  uint32_t head_bytes;
  std::array<char, kKeyDigits> key;
  int64_t created;
  double milliseconds;
  std::array<uint64_t, 5> lengths;  // signature, arch, options, image, log
};
static_assert(std::is_trivially_copyable_v<FileHead> && sizeof(FileHead) == 136);

std::string_view as_bytes(const auto& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// True if the lengths add up to exactly `total`, without overflow.
bool add_up(const std::array<uint64_t, 5>& lengths, uint64_t total) {
  for (const uint64_t length : lengths) {
    if (length > total) return false;
    total -= length;
  }
  return total == 0;
}

bool is_key(std::string_view key) {
  return key.size() == kKeyDigits &&
         key.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_ours(const FileHead& head) {
  return head.magic == kMagic && head.format == kCacheFormat && head.head_bytes == sizeof(head) &&
         is_key({head.key.data(), kKeyDigits});
}

KeyedEntry described_by(const FileHead& head) {
  KeyedEntry found;
  found.key.assign(head.key.data(), kKeyDigits);
  found.entry.created = head.created;
  found.entry.milliseconds = head.milliseconds;
  return found;
}

}  // namespace

std::string entry_file(std::string_view key) { return std::string(key).append(kEntrySuffix); }

std::string encode_entry(const CacheEntry& entry, std::string_view key) {
  const std::array<const std::string*, 5> texts{&entry.signature, &entry.arch, &entry.options,
                                                &entry.image, &entry.log};
  FileHead head{};
  head.magic = kMagic;
  head.format = kCacheFormat;
  head.head_bytes = sizeof(FileHead);
  key.copy(head.key.data(), kKeyDigits);
  head.created = entry.created;
  head.milliseconds = entry.milliseconds;
  for (size_t i = 0; i < texts.size(); ++i) head.lengths[i] = texts[i]->size();
  std::string bytes(as_bytes(head));
  for (const std::string* text : texts) bytes += *text;
  const Hash128 hash = xxh3_128(bytes);
  bytes += as_bytes(hash);
  return bytes;
}

std::optional<KeyedEntry> decode_any_entry(std::string_view bytes) {
  FileHead head;
  Hash128 hash;
  if (bytes.size() < sizeof(head) + sizeof(hash)) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof(head));
  const std::string_view covered = bytes.substr(0, bytes.size() - sizeof(hash));
  std::memcpy(&hash, bytes.data() + covered.size(), sizeof(hash));
  const bool sound = is_ours(head) && add_up(head.lengths, covered.size() - sizeof(head)) &&
                     xxh3_128(covered) == hash;
  if (!sound) return std::nullopt;

  KeyedEntry found = described_by(head);
  CacheEntry& entry = found.entry;
  const std::array<std::string*, 5> texts{&entry.signature, &entry.arch, &entry.options,
                                          &entry.image, &entry.log};
  size_t at = sizeof(head);
  for (size_t i = 0; i < texts.size(); ++i) {
    *texts[i] = bytes.substr(at, head.lengths[i]);
    at += head.lengths[i];
  }
  if (entry.image.empty()) return std::nullopt;
  return found;
}

std::optional<CacheEntry> decode_entry(std::string_view bytes, std::string_view key,
                                       std::string_view arch) {
  std::optional<KeyedEntry> found = decode_any_entry(bytes);
  if (!found || found->key != key || found->entry.arch != arch) return std::nullopt;
  return std::move(found->entry);
}

std::optional<KeyedEntry> decode_entry_head(std::string_view first_bytes) {
  FileHead head;
  if (first_bytes.size() < sizeof(head)) return std::nullopt;
  std::memcpy(&head, first_bytes.data(), sizeof(head));
  const std::string_view texts = first_bytes.substr(sizeof(head));
  const auto [signature, arch, options, image, log] = head.lengths;
  if (!is_ours(head) || signature > texts.size() || arch > texts.size() - signature)
    return std::nullopt;
  KeyedEntry found = described_by(head);
  found.entry.signature = texts.substr(0, signature);
  found.entry.arch = texts.substr(signature, arch);
  return found;
}

DiskCache::DiskCache(std::string folder, size_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes) {}

std::optional<CacheEntry> DiskCache::load(const std::string& key, std::string_view arch) {
  std::string bytes;
  const auto result = folder_.read(entry_file(key), bytes);
  if (result == CacheFolder::ReadResult::absent) return std::nullopt;
  std::optional<CacheEntry> entry;
  if (result == CacheFolder::ReadResult::done) entry = decode_entry(bytes, key, arch);
  if (!entry) reject(key);
  return entry;
}

bool DiskCache::store(const std::string& key, const CacheEntry& entry) {
  const std::string bytes = encode_entry(entry, key);
  if (!folder_.write(entry_file(key), bytes)) return false;
  // Listing the folder costs more than a write, so it is done at the first store and then after
  // each 64th of the limit. The eighth kept free makes the limit hold for 8 processes at once.
  const size_t before = bytes_until_trim_.load();
  if (bytes.size() < before) {
    bytes_until_trim_ = before - bytes.size();
  } else {
    bytes_until_trim_ = max_bytes_ / 64;
    folder_.trim(kEntrySuffix, max_bytes_ / 8 * 7);
  }
  return true;
}

void DiskCache::reject(const std::string& key) {
  ++bad_entries_;
  folder_.remove(entry_file(key));
}

CacheFolder::Lock DiskCache::lock(const std::string& key, std::chrono::milliseconds timeout) {
  // 256 files that are kept, not one for each key: removing a lock file is a race.
  return CacheFolder::Lock(folder_, "lock-" + key.substr(0, 2), timeout);
}

}  // namespace tensorcraft::jit

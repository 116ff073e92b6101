// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/hash.hpp"
#include "tensorcraft/jit/cache.hpp"
#include "tensorcraft/jit/kernel_cache.hpp"
#include "tensorcraft/jit/toolchain.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

namespace tensorcraft::jit {
namespace {

using enum CacheFolder::ReadResult;

constexpr std::array<char, 8> kMagic{'T', 'C', 'B', 'U', 'N', 'D', 'L', 'E'};
constexpr uint32_t kBundleFormat = 1;

// A bundle is this, the memos of the compilers, the entries as a cache folder has them, each after
// its length, and the Hash128 of all bytes before it. It holds no file name: an entry's comes from
// its key. Numbers are as the machine stores them; another byte order fails at `format`.
struct BundleHead {
  std::array<char, 8> magic = kMagic;
  uint32_t format = kBundleFormat;
  uint32_t head_bytes = sizeof(BundleHead);
  uint64_t memos = 0, entries = 0;
};
static_assert(sizeof(BundleHead) == 32);

void append(std::string& bytes, const auto& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append_record(std::string& bytes, std::string_view record) {
  append(bytes, uint64_t(record.size()));
  bytes.append(record);
}

// Takes values off the front of the bytes; false, and nothing taken, if too few are left.
struct Reader {
  std::string_view rest;
  bool take(auto& value) {
    if (rest.size() < sizeof(value)) return false;
    rest.copy(reinterpret_cast<char*>(&value), sizeof(value));
    rest.remove_prefix(sizeof(value));
    return true;
  }
  bool take_record(std::string_view& record) {
    uint64_t length = 0;
    if (!take(length) || length > rest.size()) return false;
    record = rest.substr(0, length);
    rest.remove_prefix(length);
    return true;
  }
};

struct Bundle {
  std::vector<std::string> memos;
  struct Entry {
    std::string key;
    std::string_view bytes;
  };
  std::vector<Entry> entries;
  size_t entry_bytes = 0;
};

// Parses `bytes`, every part verified; nullopt if anything at all does not match.
std::optional<Bundle> parse(std::string_view bytes) {
  Hash128 hash;
  BundleHead head;
  if (bytes.size() < sizeof(head) + sizeof(hash)) return std::nullopt;
  Reader reader{bytes.substr(0, bytes.size() - sizeof(hash))};
  std::memcpy(&hash, bytes.data() + reader.rest.size(), sizeof(hash));
  if (xxh3_128(reader.rest) != hash || !reader.take(head) || head.magic != kMagic ||
      head.format != kBundleFormat || head.head_bytes != sizeof(head))
    return std::nullopt;
  Bundle bundle;
  std::string_view record;
  for (uint64_t i = 0; i < head.memos; ++i) {
    if (!reader.take_record(record)) return std::nullopt;
    bundle.memos.emplace_back(record);
    const auto memo = decode_memo(bundle.memos.back());
    if (!memo || !memo->path.empty()) return std::nullopt;
  }
  for (uint64_t i = 0; i < head.entries; ++i) {
    if (!reader.take_record(record)) return std::nullopt;
    auto found = decode_any_entry(record);
    if (!found) return std::nullopt;
    bundle.entries.push_back({std::move(found->key), record});
    bundle.entry_bytes += record.size();
  }
  if (!reader.rest.empty()) return std::nullopt;
  return bundle;
}

[[noreturn]] void fail_file(const std::string& path, std::string_view what) {
  fail(ErrorKind::io, "kernel bundle ", path, " ", what, ": ", std::strerror(errno));
}

// Replaces `path` by the bytes as a whole, or leaves it as it was.
void write_whole(const std::string& path, const std::string& bytes) {
  const std::string temporary = path + ".tmp-" + std::to_string(getpid());
  const auto close = [](std::FILE* file) { std::fclose(file); };
  std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(temporary.c_str(), "wb"), close);
  const bool written = file &&
                       std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size() &&
                       std::fflush(file.get()) == 0 && fsync(fileno(file.get())) == 0;
  if (written && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  std::remove(temporary.c_str());
  errno = error;
  fail_file(path, "cannot be written");
}

std::string read_whole(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    errno = error ? error.value() : EINVAL;
    fail_file(path, "cannot be read");
  }
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file) fail_file(path, "cannot be read");
  return bytes;
}

// Entries on their way into a folder: what was put there is taken away again unless kept.
class Import {
 public:
  explicit Import(CacheFolder& folder) : folder_(folder) {}
  ~Import() {
    for (const auto& [temporary, name] : staged_) folder_.remove(temporary);
    for (const std::string& name : published_) folder_.remove(name);
  }
  Import(const Import&) = delete;
  Import& operator=(const Import&) = delete;

  bool stage(const Bundle::Entry& entry) {
    std::string temporary = folder_.stage(entry.bytes);
    if (temporary.empty()) return false;
    staged_.emplace_back(std::move(temporary), entry_file(entry.key));
    return true;
  }
  bool publish() {
    for (; !staged_.empty(); staged_.pop_back()) {
      const auto& [temporary, name] = staged_.back();
      if (!folder_.publish(temporary, name)) return false;
      published_.push_back(name);
    }
    return true;
  }
  size_t keep() { return std::exchange(published_, {}).size(); }

 private:
  CacheFolder& folder_;
  std::vector<std::pair<std::string, std::string>> staged_;
  std::vector<std::string> published_;
};

bool has_good_entry(CacheFolder& folder, const std::string& key) {
  std::string bytes;
  if (folder.read(entry_file(key), bytes) != done) return false;
  const auto found = decode_any_entry(bytes);
  return found && found->key == key;
}

}  // namespace

size_t KernelCache::export_bundle(const std::string& path, const CacheFilter& filter) {
  BundleHead head;
  std::string body, bytes;
  for (const std::string& memo : recorded_toolchains(folder_)) {
    append_record(body, memo);
    ++head.memos;
  }
  for (const CacheItem& item : list()) {
    if (filter && !filter(item)) continue;
    if (folder_.peek(entry_file(item.key), bytes) != done) continue;
    const auto found = decode_any_entry(bytes);
    if (!found || found->key != item.key) continue;
    append_record(body, bytes);
    ++head.entries;
  }
  if (head.entries == 0)
    fail(ErrorKind::not_found, "kernel cache ", folder_.path(),
         " holds no entry for the bundle; compile the kernels first, as `warmup` does");
  std::string bundle;
  append(bundle, head);
  bundle += body;
  append(bundle, xxh3_128(bundle));
  write_whole(path, bundle);
  return head.entries;
}

BundleImport KernelCache::import_bundle(const std::string& path) {
  const std::string bytes = read_whole(path);
  const std::optional<Bundle> bundle = parse(bytes);
  if (!bundle)
    fail(ErrorKind::value, "kernel bundle ", path,
         " is damaged or was not written by this version of the library; nothing was imported");
  const size_t room = limit_bytes_ / 8 * 7;
  if (bundle->entry_bytes > room)
    fail(ErrorKind::value, "kernel bundle ", path, " holds ", bundle->entry_bytes,
         " bytes, and the folder keeps ", room,
         "; raise cache_limit_bytes in the configuration file");
  const auto fail_folder = [this] {
    const int error = errno;
    const std::string problem = folder_.problem();
    fail(ErrorKind::io, "kernel cache ", folder_.path(),
         " cannot take a bundle: ", problem.empty() ? std::strerror(error) : problem,
         "; nothing was imported");
  };
  BundleImport result;
  Import import(folder_);
  for (const Bundle::Entry& entry : bundle->entries) {
    if (has_good_entry(folder_, entry.key))
      ++result.already_there;
    else if (!import.stage(entry))
      fail_folder();
  }
  if (!import.publish()) fail_folder();
  for (const std::string& memo : bundle->memos)
    if (!record_toolchain(folder_, memo)) fail_folder();
  result.imported = import.keep();
  folder_.trim(kEntrySuffix, room);  // the oldest go, and these are new
  return result;
}

}  // namespace tensorcraft::jit

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/toolchain.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/hash.hpp"

#include <dlfcn.h>
#include <sys/stat.h>

#include <sstream>

namespace tensorcraft::jit {
namespace {

constexpr std::string_view kMemoHead = "tensorcraft nvrtc memo 1";
constexpr std::string_view kRecordPrefix = "compiler-";

// Everything but the file system that decides which NVRTC is found: the setting, and the place of
// this library. One user may have several installations over one cache folder.
std::string* make_memo_name() {
  Dl_info info{};
  dladdr(reinterpret_cast<const void*>(&encode_memo), &info);
  Sha256 hash;
  hash.field(config().nvrtc).field(info.dli_fname ? info.dli_fname : "");
  return new std::string("nvrtc-" + hash.hex().substr(0, 16));
}
const std::string& memo_name() {
  static constinit FirstMade<const std::string, make_memo_name> name;
  return *name;
}

// Size and time of a file into a memo; false if it is not there.
bool stamp(ToolchainMemo& memo) {
  struct stat status;
  if (stat(memo.path.c_str(), &status) != 0) return false;
  memo.bytes = status.st_size;
  memo.modified_ns = status.st_mtim.tv_sec * 1000000000LL + status.st_mtim.tv_nsec;
  return true;
}

Toolchain ask_nvrtc() {
  if (!cuda::nvrtc_available()) {
    fail(ErrorKind::unsupported, cuda::nvrtc_problem());
  }
  const auto architectures = cuda::nvrtc_architectures();
  return {cuda::nvrtc_version(), {architectures.begin(), architectures.end()}};
}

}  // namespace

std::string encode_memo(const ToolchainMemo& memo) {
  std::string text = join(kMemoHead, "\n", memo.path, "\n", memo.bytes, " ", memo.modified_ns, "\n",
                          memo.toolchain.version.major, " ", memo.toolchain.version.minor, "\n");
  for (const int architecture : memo.toolchain.architectures) text += join(architecture, " ");
  text += "\n";
  const Hash128 hash = xxh3_128(text);
  return text + join(hash.low, " ", hash.high, "\n");
}

std::optional<ToolchainMemo> decode_memo(const std::string& text) {
  std::istringstream lines(text);
  std::string head, numbers, versions, architectures;
  ToolchainMemo memo;
  if (!std::getline(lines, head) || head != kMemoHead || !std::getline(lines, memo.path) ||
      !std::getline(lines, numbers) || !std::getline(lines, versions) ||
      !std::getline(lines, architectures)) {
    return std::nullopt;
  }
  std::istringstream(numbers) >> memo.bytes >> memo.modified_ns;
  std::istringstream(versions) >> memo.toolchain.version.major >> memo.toolchain.version.minor;
  std::istringstream list(architectures);
  for (int architecture; list >> architecture;) {
    memo.toolchain.architectures.push_back(architecture);
  }
  // Writing it again must give the same bytes, hash included: nothing else needs checking.
  if (encode_memo(memo) != text) return std::nullopt;
  return memo;
}

std::optional<Toolchain> ToolchainSource::from_memo() {
  std::string text;
  if (folder_.read(memo_name(), text) != CacheFolder::ReadResult::done) return std::nullopt;
  const std::optional<ToolchainMemo> memo = decode_memo(text);
  if (!memo) return std::nullopt;
  ToolchainMemo now = *memo;
  if (!stamp(now) || now != *memo) return std::nullopt;
  return memo->toolchain;
}

std::vector<std::string> recorded_toolchains(CacheFolder& folder) {
  std::vector<std::string> memos;
  for (const CacheFolder::FileInfo& file : folder.list(kRecordPrefix, "")) {
    std::string text;
    if (folder.peek(file.name, text) == CacheFolder::ReadResult::done && decode_memo(text))
      memos.push_back(std::move(text));
  }
  return memos;
}

bool record_toolchain(CacheFolder& folder, const std::string& memo) {
  const std::string name = std::string(kRecordPrefix) + sha256_hex(memo).substr(0, 16);
  std::string text;
  const bool there = folder.read(name, text) == CacheFolder::ReadResult::done && text == memo;
  return there || folder.write(name, memo);
}

void ToolchainSource::write_memo(const Toolchain& toolchain) {
  ToolchainMemo memo;
  memo.toolchain = toolchain;
  memo.path = cuda::nvrtc_path();
  // A name the loader resolved by itself cannot be checked later, so it is not remembered.
  const bool checkable = memo.path.starts_with('/') && memo.path.find('\n') == memo.path.npos;
  if (checkable && stamp(memo)) folder_.write(memo_name(), encode_memo(memo));
}

std::vector<Toolchain> ToolchainSource::candidates() {
  {
    const std::lock_guard lock(mutex_);
    if (!known_) known_ = from_memo();
    if (known_) return {*known_};
    if (!cuda::nvrtc_available()) {
      std::vector<Toolchain> all;
      for (const std::string& memo : recorded_toolchains(folder_))
        all.push_back(decode_memo(memo)->toolchain);
      if (!all.empty()) return all;
    }
  }
  return {confirm()};
}

Toolchain ToolchainSource::confirm() {
  const std::lock_guard lock(mutex_);
  if (!confirmed_) {
    const Toolchain real = ask_nvrtc();
    if (known_ != real) write_memo(real);
    known_ = real;
    confirmed_ = true;
  }
  return *known_;
}

void ToolchainSource::record() {
  ToolchainMemo memo;  // of no file: it holds when the file is gone
  memo.toolchain = confirm();
  record_toolchain(folder_, encode_memo(memo));
}

}  // namespace tensorcraft::jit

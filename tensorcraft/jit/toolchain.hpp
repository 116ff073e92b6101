// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/folder.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::jit {

// A kernel's key takes this from the compiler.
struct Toolchain {
  cuda::NvrtcVersion version;
  std::vector<int> architectures;  // the numbers NVRTC compiles for, ascending
  friend bool operator==(const Toolchain&, const Toolchain&) = default;
};

// Which compiler was found last time, so that a warm start need not open it: opening costs up to
// 100 ms. True as long as the file has this size and time.
struct ToolchainMemo {
  std::string path;
  long long bytes = 0, modified_ns = 0;
  Toolchain toolchain;
  friend bool operator==(const ToolchainMemo&, const ToolchainMemo&) = default;
};
std::string encode_memo(const ToolchainMemo& memo);
std::optional<ToolchainMemo> decode_memo(const std::string& text);

// Answers from the memo in the cache folder, or from NVRTC itself. A compiler installed later in a
// better place is noticed at the first miss; until then the entries of the old one serve. If there
// is no NVRTC, those whose entries came into this folder name what still runs.
class ToolchainSource {
 public:
  explicit ToolchainSource(CacheFolder& folder) : folder_(folder) {}
  // Returns the compilers that an entry may have been compiled with, the likeliest first: one if
  // there is NVRTC. Kind unsupported if there is neither.
  std::vector<Toolchain> candidates();
  // Opens NVRTC, which is about to be used, and writes the memo anew if it was wrong.
  Toolchain confirm();
  // Makes the folder name the confirmed compiler, for processes without one and for bundles.
  void record();

 private:
  std::optional<Toolchain> from_memo();
  void write_memo(const Toolchain& toolchain);

  CacheFolder& folder_;
  ForkSafeMutex mutex_;
  std::optional<Toolchain> known_;
  bool confirmed_ = false;
};

// The compilers that a folder names, the one recorded last first, as texts that decode_memo()
// reads; and one of them from elsewhere.
std::vector<std::string> recorded_toolchains(CacheFolder& folder);
bool record_toolchain(CacheFolder& folder, const std::string& memo);

}  // namespace tensorcraft::jit

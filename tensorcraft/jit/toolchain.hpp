// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/folder.hpp"

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::jit {

// What a kernel's key takes from the compiler.
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
// better place is noticed at the first miss; until then the entries of the old one serve. Where
// there is no NVRTC, the last one used in this folder names the entries that still run.
class ToolchainSource {
 public:
  explicit ToolchainSource(CacheFolder& folder) : folder_(folder) {}
  // Kind unsupported where there is neither a memo nor NVRTC.
  Toolchain get();
  // Opens NVRTC, which is about to be used, and writes the memo anew where it was wrong.
  Toolchain confirm();

 private:
  std::optional<Toolchain> from_memo();
  std::optional<Toolchain> last_used();
  void write_memo(const Toolchain& toolchain);

  CacheFolder& folder_;
  std::mutex mutex_;
  std::optional<Toolchain> known_;
  bool confirmed_ = false;
};

}  // namespace tensorcraft::jit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/config.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/compiler.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/jit/source.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace tensorcraft::test {

// Keeps what passed a slow check in an earlier run, of any tree of this user, in a file beside the
// JIT cache. A key is a hash of all that the check looks at. With TC_TEST_FULL nothing has passed
// before.
class PassedBefore {
 public:
  explicit PassedBefore(std::string_view check) : file_(file_of(config().cache_dir, check)) {
    std::error_code ignored;  // then everything is checked every time
    std::filesystem::create_directories(file_.parent_path(), ignored);
    if (std::getenv("TC_TEST_FULL")) return;
    std::ifstream file(file_);
    for (std::string key; file >> key;) keys_.insert(key);
  }

  bool contains(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    return keys_.contains(key);
  }
  // Written at once: a run that is ended keeps what it has done.
  void add(const std::string& key) {
    const std::lock_guard lock(mutex_);
    if (keys_.insert(key).second) std::ofstream(file_, std::ios::app) << key + "\n";
  }

 private:
  // None without a cache folder, as on a machine without a home folder.
  static std::filesystem::path file_of(const std::string& cache, std::string_view check) {
    return cache.empty() ? std::filesystem::path()
                         : std::filesystem::path(cache + "-checks") / check;
  }

  const std::filesystem::path file_;
  std::set<std::string> keys_;
  mutable std::mutex mutex_;
};

// The JIT's hash of a kernel: of the compiler, its options and every text that it reads.
inline std::string program_hash(const jit::KernelKey& key, std::string_view arch) {
  const auto known = cuda::nvrtc_architectures();
  const jit::Toolchain toolchain{cuda::nvrtc_version(), {known.begin(), known.end()}};
  return jit::make_program(key, arch, toolchain).key;
}

}  // namespace tensorcraft::test

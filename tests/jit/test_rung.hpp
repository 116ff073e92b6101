// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/jit/entry.hpp"
#include "tensorcraft/jit/source.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

// A rung of the tests' own, and folders to cache in.
namespace tensorcraft::test {

struct ScaleConfig {
  int block_m = 1, unroll = 2;
};

inline constexpr ConfigField kScaleFields[] = {{"block_m"}, {"unroll"}};

inline const jit::Rung kScale{"test",
                              "scale",
                              "tensorcraft/test/scale.cuh",
                              "tensorcraft::kernel::test::scale",
                              "tensorcraft::kernel::test::Config",
                              kScaleFields};

// `factor` stands for an edit of the header.
inline void add_scale_header(const std::string& factor = "2") {
  jit::add_source("tensorcraft/test/params.h", R"(#pragma once
#include "tensorcraft/device/base.h"
namespace tensorcraft::kernel::test {
struct Params { const void* in; void* out; int64_t count; };
struct Config { int block_m; int unroll; };
}
)");
  jit::add_source("tensorcraft/test/scale.cuh", R"(#pragma once
#include "tensorcraft/test/params.h"
namespace tensorcraft::kernel::test {
template <class T, Config C>
TC_DEVICE void scale(const Params& p) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < p.count) static_cast<T*>(p.out)[i] = static_cast<const T*>(p.in)[i] * T()" +
                                                    factor + R"( * C.unroll);
}
}
)");
}

inline jit::KernelKey scale_key(DType type = DType::float32, int unroll = 2) {
  jit::KernelKey key{.rung = &kScale, .types = {type}, .num_types = 1, .threads = 128};
  key.config = config_bytes(ScaleConfig{1, unroll});
  return key;
}

// Sets or removes (null) an environment variable for a scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    assign(value);
  }
  ~ScopedVariable() { assign(before_ ? before_->c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  void assign(const char* value) { value ? setenv(name_, value, 1) : unsetenv(name_); }
  const char* name_;
  std::optional<std::string> before_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace tensorcraft::test

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tensorcraft::simt {
struct Instance;
}

namespace tensorcraft::jit {

// One rung: a `template <types..., Config> TC_DEVICE void function(const Params&)` in an embedded
// header. Objects are static; the address is the identity.
struct Rung {
  std::string_view header;    // "tensorcraft/ops/gemm/02_block_tiled.cuh"
  std::string_view function;  // "tensorcraft::kernel::gemm::block_tiled"
  // "tensorcraft::kernel::gemm::Params", or what the Config has a part in:
  // "tensorcraft::ParamsOf<tensorcraft::kernel::rms_norm::Params, Config>".
  std::string_view params;
  // "tensorcraft::kernel::gemm::Config{.block_m = 64}"; null for a function without a Config.
  std::string (*config_text)(const void* config);
  // What of it is compiled for the SIMT device (op/simt.hpp); null: nothing.
  std::vector<simt::Instance> (*simt_instances)() = nullptr;
};

inline constexpr int kMaxTypes = 4;
inline constexpr size_t kMaxConfigBytes = 80;

// Everything that decides the compiled code but the architecture. Plain data: comparing or hashing
// one never formats text.
struct KernelKey {
  const Rung* rung = nullptr;
  std::array<DType, kMaxTypes> types{};
  int32_t num_types = 0;
  int32_t threads = 0;     // launch bounds
  int32_t min_blocks = 1;  // blocks per SM asked for in the launch bounds
  std::array<unsigned char, kMaxConfigBytes> config{};
  friend bool operator==(const KernelKey&, const KernelKey&) = default;
};
static_assert(std::has_unique_object_representations_v<KernelKey>, "hashed by its bytes");

// Stores a Config by its bytes, so it must have no padding: int and enum-of-int fields only.
template <class Config>
void set_config(KernelKey& key, const Config& config) {
  static_assert(std::has_unique_object_representations_v<Config>, "Config must have no padding");
  static_assert(sizeof(Config) <= kMaxConfigBytes);
  std::memcpy(key.config.data(), &config, sizeof(Config));
}

// The number in "sm_90a". Kind value if it is none.
int arch_number(std::string_view arch);
// "tensorcraft::bf16", "float", ...: how device text spells a dtype.
std::string_view device_type(DType dtype);
// "gemm_block_tiled": operator and rung, the name of the one kernel in a module.
std::string entry_name(const Rung& rung);
// The text NVRTC compiles for a key: comment head, include, one extern "C" entry, which from sm_90
// on waits for the kernels in front of it first. `arch` is what the kernel is for ("sm_90a"). Kind
// value for a key that is not complete.
std::string entry_text(const KernelKey& key, std::string_view arch);
// "gemm_block_tiled_bfloat16_bm64_bn64": entry name, dtypes, and the Config's fields by the first
// letters of their words.
std::string readable_name(const KernelKey& key);

}  // namespace tensorcraft::jit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/launch.hpp"

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace tensorcraft::jit {

// One rung: a `template <types..., Config> TC_DEVICE void function(const Params&)` in an embedded
// header. Objects are static; the address is the identity.
struct Rung {
  std::string_view header;    // "tensorcraft/ops/gemm/02_block_tiled.cuh"
  std::string_view function;  // "tensorcraft::kernel::gemm::block_tiled"
  std::string_view params;    // "tensorcraft::kernel::gemm::Params"
  std::string (*config_text)(
      const void* config);  // "tensorcraft::kernel::gemm::Config{.block_m = 64}"
};

inline constexpr int kMaxTypes = 4;
inline constexpr size_t kMaxConfigBytes = 64;

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

// Stores a Config by its bytes, so it must have no padding: int and enum-of-int fields only.
template <class Config>
void set_config(KernelKey& key, const Config& config) {
  static_assert(std::has_unique_object_representations_v<Config>, "Config must have no padding");
  static_assert(sizeof(Config) <= kMaxConfigBytes);
  std::memcpy(key.config.data(), &config, sizeof(Config));
}

// "tensorcraft::bf16", "float", ...: how device text spells a dtype.
std::string_view device_type(DType dtype);
// The text NVRTC compiles for a key: comment head, include, one extern "C" entry named tc_entry.
std::string entry_text(const KernelKey& key, std::string_view arch);

// What the compile gate and `explain` read from a compilation.
struct CompileReport {
  std::string signature;  // readable, ends in the key's hash
  std::string image, log;
  int registers = 0;
  size_t shared_bytes = 0, spill_bytes = 0;
  double milliseconds = 0;
  bool from_disk = false;
};
// Compiles for an architecture without loading; goes through the disk cache unless `fresh`.
CompileReport compile(const KernelKey& key, std::string_view arch, bool fresh = false);

// The loaded kernel for a key on a device: memory, then disk, then NVRTC. Safe from any thread.
// Kind compile with the log of NVRTC where the text does not compile; nothing is cached then.
std::shared_ptr<const LoadedKernel> get_kernel(const KernelKey& key, Device device);

// Counters since the process began, for tests and `doctor`.
struct Counters {
  long memory_hits = 0, disk_hits = 0, compiles = 0, bad_entries = 0;
};
Counters counters();

}  // namespace tensorcraft::jit

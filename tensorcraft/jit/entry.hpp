// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/core/kernel_config.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tensorcraft::jit {

struct UserSource;  // user_source.hpp

// One rung: a `template <types..., Config> TC_DEVICE void function(const Params&)` in an embedded
// header. Objects are static; the address is the identity.
struct Rung {
  // "gemm", "block_tiled": together the name of the kernel.
  std::string op, name;
  std::string header;       // "tensorcraft/ops/gemm/02_block_tiled.cuh"
  std::string function;     // "tensorcraft::kernel::gemm::BlockTiled::run"
  std::string config = {};  // "tensorcraft::kernel::gemm::Config"; empty: it has none
  std::span<const ConfigField> fields = {};  // all of the Config, in its order
  const UserSource* user = nullptr;          // of a user's kernel, which is no template of ours
  // The Config whose kernel also serves calls of this one; null: there is none but itself.
  std::function<ConfigBytes(const ConfigBytes&)> general = nullptr;
};

// Everything that decides the compiled code but the architecture. Plain data: comparing or hashing
// one never formats text.
struct KernelKey {
  const Rung* rung = nullptr;
  std::array<DType, kMaxKernelTypes> types{};
  int32_t num_types = 0;
  int32_t threads = 0;     // launch bounds
  int32_t min_blocks = 1;  // blocks per SM asked for in the launch bounds
  ConfigBytes config{};
  friend auto operator<=>(const KernelKey&, const KernelKey&) = default;
};
static_assert(std::has_unique_object_representations_v<KernelKey>, "hashed by its bytes");

// The number in "sm_90a". Kind value if it is none.
int arch_number(std::string_view arch);
// "tensorcraft::bf16", "float", ...: how device text spells a dtype.
std::string_view device_type(DType dtype);
// "gemm_block_tiled": operator and rung, the name of the one kernel in a module.
std::string entry_name(const Rung& rung);
// "block_m = 64, layout = row_major": a Config of the rung as a reader sees it.
std::string config_fields(const Rung& rung, const ConfigBytes& config,
                          uint64_t which = ~uint64_t(0));
// The text NVRTC compiles for a key: comment head, include, one extern "C" entry, which from sm_90
// on waits for the kernels in front of it first. `arch` is what the kernel is for ("sm_90a"). Kind
// value for a key that is not complete.
std::string entry_text(const KernelKey& key, std::string_view arch);
// The text a host compiler compiles for a key: a function of the entry's name that takes the
// address of the params. Kind value for a key that is not complete.
std::string host_text(const KernelKey& key);
// A part of that text, for texts that hold many: the Config, and the function under the declaration
// `head` ("void body").
std::string host_function(const KernelKey& key, std::string_view head);
// "gemm_block_tiled_bfloat16_bm64_bn64": entry name, dtypes, and the Config's fields by the first
// letters of their words.
std::string readable_name(const KernelKey& key);

}  // namespace tensorcraft::jit

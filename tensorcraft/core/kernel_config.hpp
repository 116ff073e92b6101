// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

// The JIT and the emulator know a kernel by these bytes: dtypes and a Config.
namespace tensorcraft {

// The most dtypes of a kernel, and the most bytes of a Config.
inline constexpr int kMaxKernelTypes = 4;
inline constexpr size_t kMaxConfigBytes = 128;
// The bytes of a Config, those behind it 0.
using ConfigBytes = std::array<unsigned char, kMaxConfigBytes>;

// A field of a Config: an int, or an enumeration of ints and the name of each of its values.
struct ConfigField {
  // Its name, and those of its values; none: numbers.
  std::string_view name;
  std::span<const std::string_view> values = {};
};

// A Config has int and enum fields only, so no padding: its bytes say all of it.
template <class Config>
constexpr ConfigBytes config_bytes(const Config& config) {
  static_assert(std::has_unique_object_representations_v<Config>, "Config must have no padding");
  static_assert(sizeof(Config) <= kMaxConfigBytes);
  const auto own = std::bit_cast<std::array<unsigned char, sizeof(Config)>>(config);
  ConfigBytes bytes{};
  for (size_t i = 0; i < own.size(); ++i) bytes[i] = own[i];
  return bytes;
}

}  // namespace tensorcraft

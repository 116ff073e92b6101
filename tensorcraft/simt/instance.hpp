// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/simt/launch.hpp"

#include <array>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

// The rungs that are compiled into the library for the SIMT device: a list of dtypes and Configs
// for each.
namespace tensorcraft::simt {

inline constexpr int kMaxTypes = 4;
inline constexpr size_t kMaxConfigBytes = 64;

struct Instance {
  std::array<DType, kMaxTypes> types{};
  int num_types = 0;
  std::array<unsigned char, kMaxConfigBytes> config{};
  Body body = nullptr;
};
using InstanceList = std::vector<Instance>;

// A Config as the bytes a kernel key holds; it has int and enum fields only, so no padding.
template <class Config>
std::array<unsigned char, kMaxConfigBytes> config_bytes(const Config& config) {
  static_assert(std::has_unique_object_representations_v<Config>, "Config must have no padding");
  static_assert(sizeof(Config) <= kMaxConfigBytes);
  std::array<unsigned char, kMaxConfigBytes> bytes{};
  std::memcpy(bytes.data(), &config, sizeof(Config));
  return bytes;
}

// The instance of exactly these types and Config; null where the list has none.
const Instance* find(const InstanceList& list, std::span<const DType> types,
                     std::span<const unsigned char> config);

}  // namespace tensorcraft::simt

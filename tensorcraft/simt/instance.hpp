// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dlpack_traits.hpp"
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/simt/launch.hpp"

#include <array>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

// The rungs that are compiled into the library for the SIMT device: a list of dtypes and Configs
// for each.
namespace tensorcraft::simt {

inline constexpr int kMaxTypes = 4;
inline constexpr size_t kMaxConfigBytes = 80;

struct Instance {
  std::array<DType, kMaxTypes> types{};
  int num_types = 0;
  std::array<unsigned char, kMaxConfigBytes> config{};
  std::array<unsigned char, kMaxConfigBytes> any{};  // 0xff: this byte of config may differ
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

// The first instance that serves these types and this Config; null where the list has none.
const Instance* find(const InstanceList& list, std::span<const DType> types,
                     std::span<const unsigned char> config);
// Whether this library's lists have kernels of the type at all; see kCompiles.
bool compiles(DType type);

// The type arguments of one instance, and the combinations of them that a list covers.
template <class... T>
struct Types {};
template <class... Combination>
struct AnyOf {};
using Floats = AnyOf<Types<float>, Types<f16>, Types<bf16>>;

// Whether the library has instances; their source files alone are compiled with the option.
#if defined(TENSORCRAFT_SIMT)
inline constexpr bool kHasInstances = TENSORCRAFT_SIMT != 0;
#else
inline constexpr bool kHasInstances = false;
#endif

// A watched library (cmake/simt.cmake) takes float16 for granted: its kernels are bfloat16's,
// access by access and barrier by barrier, and were a third of all that it compiles and runs.
#if defined(TENSORCRAFT_SIMT_WATCHED)
template <class T>
inline constexpr bool kCompiles = !std::is_same_v<T, f16>;
#else
template <class T>
inline constexpr bool kCompiles = true;
#endif

template <class Params, const auto& kConfigs, size_t kIndex, class Rung, class... T>
Instance instance(Types<T...>, Rung) {
  static_assert(sizeof...(T) <= kMaxTypes);
  return {.types = {dtype_of<T>()...},
          .num_types = sizeof...(T),
          .config = config_bytes(kConfigs[kIndex]),
          .body = [](const void* params) {
            Rung{}.template operator()<T..., kConfigs[kIndex]>(*static_cast<const Params*>(params));
          }};
}

// A rung compiled for every combination of types and every Config of the array `kConfigs`, which
// has static storage. `rung` is a lambda []<class T, Config C>(const Params& p) { idea<T, C>(p); }.
// `any` are members of Config in which a wanted Config may differ from the one compiled: the rung
// does not read them, or the compiled value also serves the others. Put exact lists first.
template <class Params, const auto& kConfigs, class... Combination, class Rung, class... Member>
InstanceList instances(AnyOf<Combination...>, Rung rung, Member... any) {
  InstanceList list;
  if constexpr (kHasInstances) {
    const auto add = [&]<class... T, size_t... i>(Types<T...> types, std::index_sequence<i...>) {
      if constexpr ((kCompiles<T> && ...))
        (list.push_back(instance<Params, kConfigs, i>(types, rung)), ...);
    };
    (add(Combination{}, std::make_index_sequence<kConfigs.size()>{}), ...);
    std::array<unsigned char, kMaxConfigBytes> mask{};
    const auto& config = kConfigs[0];
    const auto offset = [&](const auto& member) {
      return reinterpret_cast<const char*>(&member) - reinterpret_cast<const char*>(&config);
    };
    (std::memset(mask.data() + offset(config.*any), 0xff, sizeof(config.*any)), ...);
    for (Instance& one : list) one.any = mask;
  }
  return list;
}

// All instances of several lists, in their order.
template <class... List>
InstanceList concat(InstanceList first, const List&... rest) {
  (first.insert(first.end(), rest.begin(), rest.end()), ...);
  return first;
}

}  // namespace tensorcraft::simt

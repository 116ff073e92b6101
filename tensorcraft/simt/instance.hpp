// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dlpack_traits.hpp"
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/core/kernel_config.hpp"
#include "tensorcraft/simt/launch.hpp"

#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// The rungs that are compiled into the library for the SIMT device: a list of dtypes and Configs
// for each.
namespace tensorcraft::simt {

struct Instance {
  std::array<DType, kMaxKernelTypes> types{};
  int num_types = 0;
  ConfigBytes config{};
  ConfigBytes any{};  // 0xff: this byte of config may differ
  Body body = nullptr;
  size_t params_bytes = 0;
};
using InstanceList = std::vector<Instance>;
// What of an operator is compiled: a list for each rung, by the name of its variant.
struct RungInstances {
  std::string_view rung;
  InstanceList instances;
};
using OperatorInstances = std::vector<RungInstances>;

// The first instance that serves these types and this Config; null if the list has none.
const Instance* find(const InstanceList& list, std::span<const DType> types,
                     std::span<const unsigned char> config);
// Whether this library's lists have kernels of the type at all; see kCompiles.
bool compiles(DType type);

// The type arguments of one instance, and the combinations of them that a list covers.
template <class... T>
struct Types {};
template <class... Combination>
struct AnyOf {};
using Float = AnyOf<Types<float>>;
using Bf16 = AnyOf<Types<bf16>>;
using Halves = AnyOf<Types<f16>, Types<bf16>>;
using Floats = AnyOf<Types<float>, Types<f16>, Types<bf16>>;
// A float and, beside it, one of its own type or a float32: of vectors, caches, results.
using FloatsAndWider = AnyOf<Types<float, float>, Types<f16, f16>, Types<f16, float>,
                             Types<bf16, bf16>, Types<bf16, float>>;
// What kernels that only move elements take them as.
using Bits = AnyOf<Types<uint8_t>, Types<int16_t>, Types<int32_t>, Types<int64_t>>;

// Pairs<Types<A...>, Types<B...>>: each A with each B.
template <class... Lists>
struct Joined;
template <class... All>
struct Joined<AnyOf<All...>> {
  using type = AnyOf<All...>;
};
template <class... First, class... Second, class... Rest>
struct Joined<AnyOf<First...>, AnyOf<Second...>, Rest...>
    : Joined<AnyOf<First..., Second...>, Rest...> {};
template <class A, class... B>
using WithEachOf = AnyOf<Types<A, B>...>;
template <class First, class Second>
struct PairsOf;
template <class... A, class... B>
struct PairsOf<Types<A...>, Types<B...>> : Joined<WithEachOf<A, B...>...> {};
template <class First, class Second>
using Pairs = typename PairsOf<First, Second>::type;

// The default Config alone.
template <class Config>
inline constexpr std::array kDefaultConfig{Config{}};

// Whether the library has instances; their source files alone are compiled with the option.
#if defined(TENSORCRAFT_SIMT)
inline constexpr bool kHasInstances = TENSORCRAFT_SIMT != 0;
#else
inline constexpr bool kHasInstances = false;
#endif

// An instrumented library (cmake/simt.cmake) takes float16 for granted: its kernels are bfloat16's,
// access by access and barrier by barrier, and were a third of all that it compiles and runs.
#if defined(TENSORCRAFT_SIMT_INSTRUMENTED)
template <class T>
inline constexpr bool kCompiles = !std::is_same_v<T, f16>;
#else
template <class T>
inline constexpr bool kCompiles = true;
#endif

// One instance as the emulator calls it.
template <class Rung, auto kConfig, class... T>
using ParamsOfRung = KernelParams<decltype(&Rung::template run<T..., kConfig>)>;
template <class Rung, auto kConfig, class... T>
void body(const void* params) {
  Rung::template run<T..., kConfig>(*static_cast<const ParamsOfRung<Rung, kConfig, T...>*>(params));
}

// The rung compiled for every combination of types and every Config of the array `kConfigs`, which
// has static storage. `any` are members of Config in which a wanted Config may differ from the one
// compiled: the rung does not read them, or the compiled value also serves the others. Put exact
// lists first.
template <class Rung, const auto& kConfigs, class... Combination, class... Member>
InstanceList list(AnyOf<Combination...>, Member... any) {
  InstanceList all;
  if constexpr (kHasInstances) {
    const auto add = [&]<class... T, size_t... i>(Types<T...>, std::index_sequence<i...>) {
      if constexpr ((kCompiles<T> && ...))
        (all.push_back({.types = {dtype_of<T>()...},
                        .num_types = sizeof...(T),
                        .config = config_bytes(kConfigs[i]),
                        .body = body<Rung, kConfigs[i], T...>,
                        .params_bytes = sizeof(ParamsOfRung<Rung, kConfigs[i], T...>)}),
         ...);
    };
    (add(Combination{}, std::make_index_sequence<kConfigs.size()>{}), ...);
    ConfigBytes mask{};
    const auto& config = kConfigs[0];
    const auto offset = [&](const auto& member) {
      return reinterpret_cast<const char*>(&member) - reinterpret_cast<const char*>(&config);
    };
    (std::memset(mask.data() + offset(config.*any), 0xff, sizeof(config.*any)), ...);
    for (Instance& one : all) one.any = mask;
  }
  return all;
}

// All instances of several lists, in their order.
template <class... List>
InstanceList concat(InstanceList first, const List&... rest) {
  (first.insert(first.end(), rest.begin(), rest.end()), ...);
  return first;
}

}  // namespace tensorcraft::simt

// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/permute/permute_simt.hpp"

#include "tensorcraft/ops/permute/00_naive.cuh"
#include "tensorcraft/ops/permute/01_vectorized.cuh"
#include "tensorcraft/ops/permute/02_tiled.cuh"

namespace tensorcraft::kernel::permute {
namespace {

using simt::AnyOf, simt::Types;
using Bits = AnyOf<Types<uint8_t>, Types<int16_t>, Types<int32_t>, Types<int64_t>>;

// 64 bits count fewer elements too.
constexpr std::array kNaive{Config{.wide = 1}};
constexpr std::array kElements{Config{.vectors = 1, .wide = 1}};
constexpr std::array kUnits{
    Config{.vector_in = 2, .vector_out = 2, .vectors = 1, .wide = 1},
    Config{.vector_in = 2, .vector_out = 2, .vectors = 4, .wide = 1},
};
constexpr std::array kTiles1{Config{.vector_in = 16, .vector_out = 16, .tile = 128}};
constexpr std::array kTiles2{Config{.vector_in = 8, .vector_out = 8, .tile = 64},
                             Config{.vector_in = 8, .tile = 64},
                             Config{.vector_out = 8, .tile = 64}, Config{.tile = 64}};
constexpr std::array kTiles4{Config{.vector_in = 4, .vector_out = 4, .tile = 64},
                             Config{.vector_in = 4, .vector_out = 4, .tile = 32},
                             Config{.vector_in = 4, .tile = 64}};
constexpr std::array kTiles8{Config{.vector_in = 2, .vector_out = 2, .tile = 32},
                             Config{.vector_in = 2, .tile = 32}};

}  // namespace

simt::InstanceList naive_instances() {
  return simt::instances<Params, kNaive>(
      Bits{}, []<class T, Config C>(const Params& p) { naive<T, C>(p); }, &Config::wide);
}

simt::InstanceList vectorized_instances() {
  const auto rung = []<class T, Config C>(const Params& p) { vectorized<T, C>(p); };
  return simt::concat(
      simt::instances<Params, kElements>(Bits{}, rung, &Config::wide),
      simt::instances<Params, kUnits>(AnyOf<Types<int64_t>>{}, rung, &Config::wide));
}

simt::InstanceList tiled_instances() {
  const auto rung = []<class T, Config C>(const Params& p) { tiled<T, C>(p); };
  return simt::concat(simt::instances<Params, kTiles1>(AnyOf<Types<uint8_t>>{}, rung),
                      simt::instances<Params, kTiles2>(AnyOf<Types<int16_t>>{}, rung),
                      simt::instances<Params, kTiles4>(AnyOf<Types<int32_t>>{}, rung),
                      simt::instances<Params, kTiles8>(AnyOf<Types<int64_t>>{}, rung));
}

}  // namespace tensorcraft::kernel::permute

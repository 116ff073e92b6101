// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/permute/problem.hpp"

#include "tensorcraft/ops/permute/00_naive.cuh"
#include "tensorcraft/ops/permute/01_vectorized.cuh"
#include "tensorcraft/ops/permute/02_tiled.cuh"

namespace tensorcraft::kernel::permute {
namespace {

using simt::AnyOf, simt::Types, simt::concat, simt::list;
using simt::Bits;

// 64 bits count fewer elements too.
constexpr std::array kElements{Config{.wide = 1}};
constexpr std::array kUnits{Config{.vector_in = 2, .vector_out = 2, .wide = 1},
                            Config{.vector_in = 2, .vector_out = 2, .vectors = 4, .wide = 1}};
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

simt::OperatorInstances instances() {
  return {{"naive", list<Naive, kElements>(Bits{}, &Config::wide)},
          {"vectorized", concat(list<Vectorized, kElements>(Bits{}, &Config::wide),
                                list<Vectorized, kUnits>(AnyOf<Types<int64_t>>{}, &Config::wide))},
          {"tiled", concat(list<Tiled, kTiles1>(AnyOf<Types<uint8_t>>{}),
                           list<Tiled, kTiles2>(AnyOf<Types<int16_t>>{}),
                           list<Tiled, kTiles4>(AnyOf<Types<int32_t>>{}),
                           list<Tiled, kTiles8>(AnyOf<Types<int64_t>>{}))}};
}

}  // namespace tensorcraft::kernel::permute

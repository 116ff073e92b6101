// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gather/problem.hpp"

#include "tensorcraft/ops/gather/00_naive.cuh"
#include "tensorcraft/ops/gather/01_vectorized.cuh"

namespace tensorcraft::kernel::gather {
namespace {

using simt::AnyOf, simt::Types, simt::concat, simt::list;
template <class Id>
using Bits = AnyOf<Types<Id, uint8_t>, Types<Id, int16_t>, Types<Id, int32_t>, Types<Id, int64_t>>;

// 64 bits count fewer elements too.
constexpr std::array kElements{Config{.wide = 1}};
constexpr std::array kUnits{Config{.vector = 2, .wide = 1},
                            Config{.vector = 2, .vectors = 4, .wide = 1}};
constexpr std::array kFewUnits{Config{.vector = 2, .wide = 1}};

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", concat(list<Naive, kElements>(Bits<int32_t>{}, &Config::wide),
                           list<Naive, kElements>(Bits<int64_t>{}, &Config::wide))},
          {"vectorized",
           concat(list<Vectorized, kElements>(Bits<int32_t>{}, &Config::wide),
                  list<Vectorized, kUnits>(AnyOf<Types<int64_t, int64_t>>{}, &Config::wide),
                  list<Vectorized, kFewUnits>(AnyOf<Types<int32_t, int64_t>>{}, &Config::wide))}};
}

}  // namespace tensorcraft::kernel::gather

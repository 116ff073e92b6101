// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gather/gather_simt.hpp"

#include "tensorcraft/ops/gather/00_naive.cuh"
#include "tensorcraft/ops/gather/01_vectorized.cuh"

namespace tensorcraft::kernel::gather {
namespace {

using simt::AnyOf, simt::Types;
template <class Id>
using Bits = AnyOf<Types<Id, uint8_t>, Types<Id, int16_t>, Types<Id, int32_t>, Types<Id, int64_t>>;

// 64 bits count fewer elements too.
constexpr std::array kElements{Config{.wide = 1}};
constexpr std::array kUnits{Config{.vector = 2, .wide = 1},
                            Config{.vector = 2, .vectors = 4, .wide = 1}};
constexpr std::array kFewUnits{Config{.vector = 2, .wide = 1}};

}  // namespace

simt::InstanceList naive_instances() {
  const auto rung = []<class Id, class T, Config C>(const Params& p) { naive<Id, T, C>(p); };
  return simt::concat(simt::instances<Params, kElements>(Bits<int32_t>{}, rung, &Config::wide),
                      simt::instances<Params, kElements>(Bits<int64_t>{}, rung, &Config::wide));
}

simt::InstanceList vectorized_instances() {
  const auto rung = []<class Id, class T, Config C>(const Params& p) { vectorized<Id, T, C>(p); };
  return simt::concat(
      simt::instances<Params, kElements>(Bits<int32_t>{}, rung, &Config::wide),
      simt::instances<Params, kUnits>(AnyOf<Types<int64_t, int64_t>>{}, rung, &Config::wide),
      simt::instances<Params, kFewUnits>(AnyOf<Types<int32_t, int64_t>>{}, rung, &Config::wide));
}

}  // namespace tensorcraft::kernel::gather
